//! Who holds a job: the record of each take-over names it in fields of their own, beside what people read.

use std::sync::Arc;

use crate::common::{Image, NOW, handle, noise};
use object_store::memory::InMemory;
use phos_storage::{Epoch, Holder, JobError};

#[tokio::test]
async fn a_take_over_names_its_agent_and_tier() {
    let store = Arc::new(InMemory::new());
    let job = handle(store.clone(), 1).await;
    let named = Holder {
        name: "host (pid 1)".into(),
        agent: Some(7),
        tier: Some("4f".into()),
    };
    let first = job.take_over(named.clone(), NOW).await.unwrap();
    let image = Image::of(vec![noise(1, 3000)]);
    let checkpoint = image.commit(&job, first.epoch).await.unwrap().number;

    let other = handle(store, 2).await;
    let second = other.take_over("another", NOW).await.unwrap();
    assert_eq!(second.previous, Some(first.epoch));
    for (epoch, holder) in [
        (first.epoch, Some(named)),
        (second.epoch, Some(Holder::from("another"))),
        // That of a checkpoint is no take-over's, and this one is not there.
        (Epoch(checkpoint.0), None),
        (Epoch(99), None),
    ] {
        assert_eq!(other.began_by(epoch).await.unwrap(), holder, "{epoch}");
    }
    let between = other.holders_between(first.epoch, second.epoch);
    assert_eq!(between.await.unwrap(), (vec!["another".into()], None));
    let (holders, reason) = (other.holders_between(Epoch(checkpoint.0), second.epoch))
        .await
        .unwrap();
    assert_eq!(holders, [Holder::from("another")]);
    assert!(reason.unwrap().contains("is not in the store"));

    match job.mark_completed(first.epoch, 0, NOW).await {
        Err(JobError::Fenced { epoch, by, .. }) => {
            assert_eq!((epoch, &*by), (first.epoch, " by another"));
        }
        other => panic!("{other:?}"),
    }
}
