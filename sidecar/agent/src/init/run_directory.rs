//! The job's run directory: made, and held by one agent at a time.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use phos_shared::run_dir;

use crate::AgentError;
use crate::config::AgentConfig;
use crate::user::JobUser;
use crate::user::way;

/// Makes the job's run directory and makes sure that no other agent uses it.
pub(super) fn open_job_dir(config: &AgentConfig) -> Result<(PathBuf, File), AgentError> {
    let dir = config.job_dir();
    let failed = |cause| AgentError::RunDir {
        path: dir.clone(),
        cause,
    };
    run_dir::make(&config.run_dir, &config.job).map_err(failed)?;
    if let Some(user) = config.job_user()?.filter(JobUser::is_another)
        && let Some(changeable) = way::changeable_by(&dir, &user).map_err(failed)?
    {
        return Err(AgentError::OpenRunDir {
            path: dir,
            changeable,
            user: user.uid(),
        });
    }
    let lock = File::create(dir.join("agent.lock")).map_err(failed)?;
    // One that was killed takes a moment to go.
    let until = Instant::now() + Duration::from_secs(3);
    loop {
        // SAFETY: a valid fd; flock touches no memory.
        let locked = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        if locked == 0 {
            return Ok((dir, lock));
        }
        if Instant::now() >= until {
            return Err(AgentError::AlreadyRunning {
                job: config.job.clone(),
                path: dir,
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
