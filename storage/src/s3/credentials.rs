//! Credentials for S3 from every source that the AWS tools use, renewed before they end.
//!
//! * The sources are asked in the order of the AWS tools. One that is not configured is passed over; one that is and
//!   fails is the answer: another identity than the one that was meant must not be taken.
//! * What was found is kept and renewed ahead of its end, one renewal at a time and beside the requests, which continue with what
//!   is still good. So an upload may take longer than any credential lives.
//! * Those without an end may be replaced all the same (a file that another tool writes): they are asked for again every
//!   [`LOOK_AGAIN`], and what files say is read anew each time.
//! * Nothing waits for ever: asking all sources is bounded by [`ASK_TIME`].
//! * Secrets are in no message.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError as Refusal;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use aws_smithy_async::time::SharedTimeSource;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use tokio::task::JoinSet;

use crate::fault::{CredentialsError, one_line};

/// Most time for asking all sources. A process or a single sign-on service may take a while; metadata services have
/// bounds of their own.
const ASK_TIME: Duration = Duration::from_secs(30);
/// How long before their end credentials are renewed, at most. Those that live shortly are renewed at half of their life.
const RENEW_AHEAD: Duration = Duration::from_secs(300);
/// How often a source whose credentials have no end is asked again.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// After a renewal that failed, while the old ones are good, at most so long until the next.
const RENEW_AGAIN: Duration = Duration::from_secs(30);

/// Which credentials are used, without any secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialsInfo {
    /// The source of the credentials, in words for people.
    pub source: String,
    /// When they end; `None`: never, or it is not known.
    pub expires: Option<SystemTime>,
}

/// A place where credentials may be found.
pub(super) struct Source {
    name: &'static str,
    provider: SharedCredentialsProvider,
}

impl Source {
    pub(super) fn new(name: &'static str, provider: impl ProvideCredentials + 'static) -> Self {
        Self {
            name,
            provider: SharedCredentialsProvider::new(provider),
        }
    }
}

#[derive(Clone)]
struct Held {
    credentials: Credentials,
    for_object_store: Arc<AwsCredential>,
    source: &'static str,
    renew_at: Option<SystemTime>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(super) struct CredentialsChain {
    inner: Arc<Inner>,
}

struct Inner {
    sources: Vec<Source>,
    time: SharedTimeSource,
    held: Mutex<Option<Held>>,
    /// Held by the one who renews.
    renewal: Arc<tokio::sync::Mutex<()>>,
    /// Where sources are asked: whoever needs credentials may be of threads that are let wait, and a program that a source starts has the class of the thread
    /// that starts it.
    runtime: Option<tokio::runtime::Handle>,
}

impl fmt::Debug for CredentialsChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsChain")
    }
}

/// Asks a new provider each time, as those of the SDK read their files once.
struct Anew<F>(F);

impl<F> fmt::Debug for Anew<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anew")
    }
}

impl<F, P> ProvideCredentials for Anew<F>
where
    F: Fn() -> P + Send + Sync,
    P: ProvideCredentials + 'static,
{
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let provider = (self.0)();
        future::ProvideCredentials::new(async move { provider.provide_credentials().await })
    }
}

impl CredentialsChain {
    /// A chain that asks these sources, in this order.
    pub(super) fn new(sources: Vec<Source>, time: SharedTimeSource) -> Self {
        Self {
            inner: Arc::new(Inner {
                sources,
                time,
                held: Mutex::new(None),
                renewal: Arc::default(),
                runtime: tokio::runtime::Handle::try_current().ok(),
            }),
        }
    }

    /// The sources that the AWS tools ask, in their order.
    pub(super) fn aws(
        config: &ProviderConfig,
        imds: aws_config::imds::Client,
        time: SharedTimeSource,
    ) -> Self {
        use aws_config::{ecs, environment, imds as metadata, profile, web_identity_token};
        let sources = vec![
            Source::new(
                "the environment (AWS_ACCESS_KEY_ID)",
                environment::EnvironmentVariableCredentialsProvider::new(),
            ),
            Source::new(
                "the profile (AWS_PROFILE, ~/.aws/config, ~/.aws/credentials)",
                Anew({
                    let config = config.clone();
                    move || {
                        #[expect(deprecated, reason = "under its new name it is another crate's")]
                        let usual = profile::profile_file::ProfileFiles::default();
                        profile::ProfileFileCredentialsProvider::builder()
                            .configure(&config)
                            // Naming them makes it read them.
                            .profile_files(usual)
                            .build()
                    }
                }),
            ),
            Source::new(
                "the web identity (AWS_WEB_IDENTITY_TOKEN_FILE)",
                web_identity_token::WebIdentityTokenCredentialsProvider::builder()
                    .configure(config)
                    .build(),
            ),
            Source::new(
                "the container's role (AWS_CONTAINER_CREDENTIALS_…_URI)",
                ecs::EcsCredentialsProvider::builder()
                    .configure(config)
                    .build(),
            ),
            Source::new(
                "the instance's role (metadata service)",
                metadata::credentials::ImdsCredentialsProvider::builder()
                    .configure(config)
                    .imds_client(imds)
                    .build(),
            ),
        ];
        Self::new(sources, time)
    }

    /// Credentials that are good now.
    async fn get(&self) -> Result<Held, CredentialsError> {
        let now = self.inner.time.now();
        if let Some(held) = self.held() {
            let wanted = held.renew_at.is_some_and(|at| now >= at);
            if !wanted && !ended(&held.credentials, now) {
                return Ok(held);
            }
            if !ended(&held.credentials, now) {
                // All go on with what there is, however long a source takes to answer.
                if let Ok(renewing) = Arc::clone(&self.inner.renewal).try_lock_owned() {
                    tokio::spawn(self.clone().renew_ahead(renewing));
                }
                return Ok(held);
            }
        }
        let _renewing = self.inner.renewal.lock().await;
        // Another may have done it meanwhile.
        let now = self.inner.time.now();
        let held = self.held();
        if let Some(held) = &held
            && !ended(&held.credentials, now)
        {
            return Ok(held.clone());
        }
        self.renew(now, held.as_ref()).await
    }

    /// Renews what is still good.
    async fn renew_ahead(self, _renewing: tokio::sync::OwnedMutexGuard<()>) {
        let now = self.inner.time.now();
        // Another may have done it meanwhile.
        let wanted = |held: &Held| held.renew_at.is_some_and(|at| now >= at);
        let held = self.held();
        if held.as_ref().is_some_and(wanted)
            && let Err(error) = self.renew(now, held.as_ref()).await
            && let Some(held) = self.held()
        {
            self.keep(held, &error, self.inner.time.now());
        }
    }

    fn held(&self) -> Option<Held> {
        let held = self.inner.held.lock();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, held: Held) -> Held {
        let mut place = (self.inner.held.lock()).unwrap_or_else(PoisonError::into_inner);
        *place = Some(held.clone());
        held
    }

    /// Goes on with credentials that could not be renewed and are still good.
    fn keep(&self, mut held: Held, error: &CredentialsError, now: SystemTime) -> Held {
        let left = held
            .credentials
            .expiry()
            .and_then(|end| end.duration_since(now).ok());
        tracing::warn!(%error, left_s = left.map(|l| l.as_secs()), "the credentials for S3 could not be renewed yet");
        // Those that ended meanwhile are renewed by whoever asks next.
        let again = left.map_or(RENEW_AGAIN, |left| (left / 2).min(RENEW_AGAIN));
        held.renew_at = Some(now + again);
        self.hold(held)
    }

    async fn renew(
        &self,
        now: SystemTime,
        before: Option<&Held>,
    ) -> Result<Held, CredentialsError> {
        let asked = tokio::time::timeout(ASK_TIME, self.ask_there(before)).await;
        let (source, credentials) = asked.unwrap_or_else(|_| {
            Err(CredentialsError::Failed {
                from: "the sources of credentials".into(),
                detail: format!("no answer within {} s", ASK_TIME.as_secs()),
            })
        })?;
        let renew_at = Some(match credentials.expiry() {
            Some(end) => {
                let left = end.duration_since(now).unwrap_or_default();
                end - RENEW_AHEAD.min(left / 2)
            }
            None => now + LOOK_AGAIN,
        });
        tracing::debug!(source, ?renew_at, "credentials for S3");
        let for_object_store = Arc::new(AwsCredential {
            key_id: credentials.access_key_id().to_owned(),
            secret_key: credentials.secret_access_key().to_owned(),
            token: credentials.session_token().map(str::to_owned),
        });
        Ok(self.hold(Held {
            credentials,
            for_object_store,
            source,
            renew_at,
        }))
    }

    /// Asks on the threads of the runtime that this was made in; not any longer than somebody waits for it.
    async fn ask_there(
        &self,
        before: Option<&Held>,
    ) -> Result<(&'static str, Credentials), CredentialsError> {
        let Some(runtime) = &self.inner.runtime else {
            return self.ask(before).await;
        };
        let (this, before) = (self.clone(), before.cloned());
        let mut asked = JoinSet::new();
        asked.spawn_on(async move { this.ask(before.as_ref()).await }, runtime);
        let answer = match asked.join_next().await {
            Some(Ok(answer)) => return answer,
            Some(Err(e)) => e.to_string(),
            None => "nobody was asked".into(),
        };
        Err(CredentialsError::Failed {
            from: "the sources of credentials".into(),
            detail: format!("the task that asks them ended: {answer}"),
        })
    }

    async fn ask(
        &self,
        before: Option<&Held>,
    ) -> Result<(&'static str, Credentials), CredentialsError> {
        let mut tried = Vec::new();
        for Source { name, provider } in &self.inner.sources {
            match provider.provide_credentials().await {
                Ok(found) => return Ok((name, found)),
                Err(refusal) if had_none(&refusal) => {
                    tracing::debug!(source = name, said = %said(&refusal), "no credentials there");
                    tried.push(*name);
                }
                Err(refusal @ Refusal::InvalidConfiguration(_)) => {
                    return Err(CredentialsError::Invalid {
                        from: (*name).into(),
                        detail: said(&refusal),
                    });
                }
                Err(refusal) => {
                    return Err(CredentialsError::Failed {
                        from: (*name).into(),
                        detail: said(&refusal),
                    });
                }
            }
        }
        // What there was a while ago is away for a while (a metadata service that does not answer).
        let tried = tried.join(", ");
        Err(match before {
            Some(_) => CredentialsError::Failed {
                from: tried,
                detail: "none of them has any now".into(),
            },
            None => CredentialsError::None { tried },
        })
    }

    pub(super) async fn info(&self) -> Result<CredentialsInfo, CredentialsError> {
        let held = self.get().await?;
        Ok(CredentialsInfo {
            source: held.source.into(),
            expires: held.credentials.expiry(),
        })
    }
}

fn ended(credentials: &Credentials, now: SystemTime) -> bool {
    credentials.expiry().is_some_and(|end| now >= end)
}

/// Whether a source has nothing to do with it. A metadata service that refuses everybody is as good as none: many machines
/// outside of AWS have such a one, and so have containers that are kept from it.
fn had_none(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::CredentialsNotLoaded(_))
        || said(refusal).contains("request forbidden: IMDS is disabled")
}

/// The causes of a refusal, in one line.
fn said(refusal: &Refusal) -> String {
    // Its own text only says of which of five kinds it is.
    let mut next = std::error::Error::source(refusal);
    let mut causes: Vec<String> = Vec::new();
    while let Some(cause) = next {
        let text = cause.to_string();
        // Some say what their cause says, too.
        if !causes.last().is_some_and(|last| last.contains(&text)) {
            causes.push(text);
        }
        next = cause.source();
    }
    if causes.is_empty() {
        causes.push(refusal.to_string());
    }
    one_line(&causes.join(": "))
}

#[async_trait]
impl CredentialProvider for CredentialsChain {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let held = self.get().await;
        held.map(|held| held.for_object_store)
            .map_err(|error| object_store::Error::Generic {
                store: "S3",
                source: error.into(),
            })
    }
}

impl ProvideCredentials for CredentialsChain {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            let held = self.get().await;
            held.map(|held| held.credentials).map_err(|error| {
                if error.is_permanent() {
                    Refusal::invalid_configuration(error)
                } else {
                    Refusal::provider_error(error)
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_smithy_async::time::TimeSource;

    use super::*;

    /// A clock that is set by hand, in seconds.
    #[derive(Debug, Clone, Default)]
    struct Clock(Arc<Mutex<u64>>);

    impl Clock {
        fn set(&self, seconds: u64) {
            *self.0.lock().unwrap() = seconds;
        }
    }

    impl TimeSource for Clock {
        fn now(&self) -> SystemTime {
            at(*self.0.lock().unwrap())
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    type Answer = Box<dyn Fn(usize) -> Result<Option<u64>, Refusal> + Send + Sync>;

    /// Hands out key `n` at the `n`th time it is asked, which ends when `answer` says.
    #[derive(Clone)]
    struct Fake {
        asked: Arc<AtomicUsize>,
        answer: Arc<Answer>,
    }

    impl fmt::Debug for Fake {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Fake")
        }
    }

    impl Fake {
        fn new(
            answer: impl Fn(usize) -> Result<Option<u64>, Refusal> + Send + Sync + 'static,
        ) -> Self {
            Self {
                asked: Arc::default(),
                answer: Arc::new(Box::new(answer)),
            }
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
        }
    }

    impl ProvideCredentials for Fake {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let n = self.asked.fetch_add(1, Ordering::SeqCst);
            future::ProvideCredentials::ready(
                (self.answer)(n).map(|end| {
                    Credentials::new(n.to_string(), "secret", None, end.map(at), "fake")
                }),
            )
        }
    }

    fn chain(sources: &[(&'static str, &Fake)], clock: &Clock) -> CredentialsChain {
        let sources = sources.iter();
        let sources = sources.map(|(name, fake)| Source::new(name, (*fake).clone()));
        CredentialsChain::new(sources.collect(), SharedTimeSource::new(clock.clone()))
    }

    /// The key that is used once a renewal that this begins has ended.
    async fn key(chain: &CredentialsChain) -> Result<String, CredentialsError> {
        chain.get().await?;
        drop(chain.inner.renewal.lock().await);
        let held = chain.get().await?;
        Ok(held.for_object_store.key_id.clone())
    }

    #[tokio::test]
    async fn they_are_kept_and_renewed_ahead_of_their_end() {
        let clock = Clock::default();
        let fake = Fake::new(|n| Ok(Some(3600 * (n as u64 + 1))));
        let chain = chain(&[("fake", &fake)], &clock);
        for (second, expected) in [(0, "0"), (3299, "0"), (3300, "1"), (3301, "1"), (9000, "2")] {
            clock.set(second);
            assert_eq!(key(&chain).await.unwrap(), expected, "at {second}");
        }
        assert_eq!(fake.asked(), 3);
        let info = chain.info().await.unwrap();
        assert_eq!((&*info.source, info.expires), ("fake", Some(at(10800))));
    }

    #[test]
    fn they_are_asked_for_on_the_threads_of_the_runtime_they_were_made_in() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("asks")
            .build()
            .unwrap();
        let asking = |_| match std::thread::current().name() {
            Some("asks") => Ok(None),
            other => Err(Refusal::not_loaded(format!("{other:?}"))),
        };
        let fake = Fake::new(asking);
        let made = runtime.enter();
        let chain = chain(&[("fake", &fake)], &Clock::default());
        drop(made);
        let other = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        assert_eq!(other.block_on(key(&chain)).unwrap(), "0");
    }

    #[tokio::test]
    async fn those_without_an_end_are_asked_for_again() {
        let clock = Clock::default();
        let fake = Fake::new(|n| match n {
            // The file is being replaced.
            1 => Err(Refusal::not_loaded("no such profile")),
            _ => Ok(None),
        });
        let chain = chain(&[("fake", &fake)], &clock);
        for (second, expected) in [(0, "0"), (299, "0"), (300, "0"), (329, "0"), (330, "2")] {
            clock.set(second);
            assert_eq!(key(&chain).await.unwrap(), expected, "at {second}");
        }
        assert_eq!(fake.asked(), 3);
    }

    #[tokio::test]
    async fn a_provider_made_anew_sees_what_changed() {
        let made = Arc::new(AtomicUsize::new(0));
        let anew = Anew({
            let made = Arc::clone(&made);
            move || {
                let n = made.fetch_add(1, Ordering::SeqCst);
                Credentials::new(n.to_string(), "secret", None, None, "fake")
            }
        });
        for expected in ["0", "1"] {
            let found = anew.provide_credentials().await.unwrap();
            assert_eq!(found.access_key_id(), expected);
        }
    }

    #[tokio::test]
    async fn those_that_live_shortly_are_renewed_at_half_of_their_life() {
        let clock = Clock::default();
        let fake = Fake::new(|n| Ok(Some(60 * (n as u64 + 1))));
        let chain = chain(&[("fake", &fake)], &clock);
        for (second, expected) in [(0, "0"), (29, "0"), (30, "1")] {
            clock.set(second);
            assert_eq!(key(&chain).await.unwrap(), expected, "at {second}");
        }
    }

    #[tokio::test]
    async fn while_they_are_good_a_renewal_that_fails_costs_nothing() {
        let clock = Clock::default();
        let fake = Fake::new(|n| match n {
            0 | 4.. => Ok(Some(3600 * (n as u64 + 1))),
            // Away, and then not even a role.
            1 => Err(Refusal::provider_error("away")),
            _ => Err(Refusal::not_loaded("no role")),
        });
        let chain = chain(&[("fake", &fake)], &clock);
        for (second, asked) in [(0, 1), (3400, 2), (3410, 2), (3430, 3)] {
            clock.set(second);
            assert_eq!(key(&chain).await.unwrap(), "0", "at {second}");
            assert_eq!(fake.asked(), asked, "at {second}");
        }
        // They have ended: what is lacking now may come back, as it was there before.
        clock.set(3600);
        let error = key(&chain).await.unwrap_err();
        assert!(!error.is_permanent(), "{error}");
        assert_eq!(key(&chain).await.unwrap(), "4");
    }

    #[tokio::test]
    async fn those_that_end_while_a_renewal_fails_are_not_used_for_ever() {
        let clock = Clock::default();
        let late = clock.clone();
        let fake = Fake::new(move |n| match n {
            0 => Ok(Some(3600)),
            1 => {
                // It takes so long to fail that what there was has ended.
                late.set(3601);
                Err(Refusal::provider_error("away"))
            }
            _ => Ok(Some(7200)),
        });
        let chain = chain(&[("fake", &fake)], &clock);
        assert_eq!(key(&chain).await.unwrap(), "0");
        clock.set(3590);
        assert_eq!(key(&chain).await.unwrap(), "2");
    }

    #[tokio::test]
    async fn many_ask_and_one_renews() {
        let clock = Clock::default();
        let fake = Fake::new(|_| Ok(Some(3600)));
        let chain = chain(&[("fake", &fake)], &clock);
        let all = futures::future::join_all((0..50).map(|_| key(&chain))).await;
        assert!(all.iter().all(|key| key.as_deref().unwrap() == "0"));
        assert_eq!(fake.asked(), 1);
    }

    #[tokio::test]
    async fn sources_that_are_not_configured_are_passed_over_and_those_that_fail_are_not() {
        let clock = Clock::default();
        let nothing = Fake::new(|_| Err(Refusal::not_loaded("not set")));
        let found = Fake::new(|_| Ok(None));
        let chain_of = |sources: &[(&'static str, &Fake)]| chain(sources, &clock);
        let first = chain_of(&[("a", &nothing), ("b", &found), ("c", &found)]);
        assert_eq!(first.info().await.unwrap().source, "b");

        let error = chain_of(&[("a", &nothing), ("b", &nothing)]);
        let error = error.get().await.err().unwrap();
        assert!(
            error.is_permanent() && error.to_string().contains("has any: a, b."),
            "{error}"
        );

        for (refusal, permanent) in [
            (
                Refusal::invalid_configuration as fn(String) -> Refusal,
                true,
            ),
            (Refusal::provider_error, false),
        ] {
            let bad = Fake::new(move |_| Err(refusal("said why".into())));
            let chain = chain_of(&[("a", &nothing), ("b", &bad), ("c", &found)]);
            let error = chain.get().await.err().unwrap();
            assert_eq!(error.is_permanent(), permanent, "{error}");
            let text = error.to_string();
            assert!(text.contains("b") && text.contains("said why"), "{text}");
        }
    }
}
