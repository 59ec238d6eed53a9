// The status page: turns what the sidecar says into one verdict, a timeline, figures, a table and a log.
//
// It goes one way: events and status → `take` (a model of what happened) → `verdict`, `problems`, `risk`, `segments` (what to
// say: pure functions of the model and the time) → `show…` (the document).
//
// Rules:
// * What comes from the server is untrusted text: it becomes text nodes and attributes, never markup.
// * A field that is missing, or an event that is not known, never throws: it is shown as far as it is understood.
// * The document is written once for all events that came since the last time, and only where something changed.
// * While the sidecar does not answer, time stands still: what is shown is what was last known.
'use strict';

// ---- Numbers, times and words ------------------------------------------------------------------------------------------------

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const NB = '\u00a0';
/** A unit or a number that must not be torn from what it belongs to. */
const digits = [0, 1, 2].map((n) => new Intl.NumberFormat('en', { minimumFractionDigits: n, maximumFractionDigits: n }));
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const number = (value, otherwise = 0) => (isNumber(value) ? value : otherwise);
const text = (value) => (typeof value === 'string' ? value : value == null ? '' : String(value));
const list = (value) => (Array.isArray(value) ? value : []);
const times = (n) => ['', 'once', 'twice'][n] ?? `${digits[0].format(n)}${NB}times`;
const count = (n, one, many = `${one}s`) => `${digits[0].format(n)}${NB}${n === 1 ? one : many}`;

/** A message of the sidecar's as a sentence. */
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? '' : '.');

/** How long something is or was, for people. */
function span(ms) {
  const s = Math.max(0, Math.floor(number(ms) / SECOND));
  const two = (big, unit, small, least) => `${big}${NB}${unit}` + (small ? ` ${small}${NB}${least}` : '');
  if (s < 60) return `${s}${NB}s`;
  if (s < 600) return two(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 3600) return two(Math.floor(s / 60), 'min');
  if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min');
  return two(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

const ago = (ms) => (ms < SECOND ? 'just now' : `${span(ms)} ago`);

/** The same for what is short: 122 ms, 1.24 s. */
function brief(ms) {
  if (!isNumber(ms)) return '–';
  if (ms < 9.95) return `${digits[1].format(ms)}${NB}ms`;
  if (ms < 999.5) return `${digits[0].format(ms)}${NB}ms`;
  return ms < MINUTE ? `${digits[ms < 10 * SECOND ? 2 : 1].format(ms / SECOND)}${NB}s` : span(ms);
}

function bytes(value) {
  if (!isNumber(value)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) [value, unit] = [value / 1024, unit + 1];
  return `${digits[unit && value < 100 ? 1 : 0].format(value)}${NB}${units[unit]}`;
}

const sameDay = (a, b) => new Date(a).toDateString() === new Date(b).toDateString();
const isTime = (at) => isNumber(at) && at > 0 && at < 8e15;
/** A time of day, with the date unless that is today. */
function time(at, now, format = clock) {
  if (!isTime(at)) return '–';
  return sameDay(at, now) ? format.format(at) : `${day.format(at)}, ${format.format(at)}`;
}
const utc = (at) => new Date(at).toISOString();

// Tables that are asked for names of the server's have no prototype: `toString` is in none of them.
const TRIGGERS = { __proto__: null, interval: 'interval', 'on-demand': 'on demand', preemption: 'preemption', terminate: 'end of the job' };
const trigger = (name) => TRIGGERS[name] ?? (text(name) || '–');
const idOf = (report) => `${report.local ? 'L' : ''}${text(report.id) || '?'}`;

/** What to do about a checkpoint that failed, by its reason; `…` marks what is typed. */
const REMEDIES = {
  __proto__: null,
  'not-quiet': 'It is tried again by itself. If it keeps failing, the job always has GPU work queued: start phos-ft with a longer `--hold-limit` (such as 2s) or `--quiesce-timeout`.',
  capturing: 'A CUDA graph was being captured. The next attempt succeeds by itself unless the job captures all the time.',
  unsupported: 'The message names what cannot be saved. Run the job without it, or give it what the message asks for; checkpoints go on when it is gone.',
  dump: 'The message names the process or file. `phos-ft doctor` checks privileges, kernel and CRIU on the trainer’s machine and says what is missing.',
  gpu: 'If it happens again, look at the GPU and its driver (`nvidia-smi`, `dmesg`), and check that trainer and sidecar see the same GPUs.',
  job: 'The job needed its memory or ended during the checkpoint. The next attempt is made by itself; if it keeps failing, leave more memory free.',
  overwritten: 'The job wrote GPU memory that was being copied while it ran. The next checkpoints copy it while the job is held: longer stops for a while, and nothing to do.',
  store: 'Check the store’s credentials, network and free space, and the disk below `--state-dir`; `phos-ft doctor` tries the store. Checkpoints go on by themselves once it is back.',
  'too-slow': 'The store is too slow for what changes between two checkpoints: give more `--host-buffer`, or a faster store.',
  fenced: 'Another machine has the job now. To run it here, end it there first.',
  agent: 'The sidecar connects to the agent again by itself. If that does not help, look at the log of the trainer (`phos-ft run`).',
  internal: 'It is tried again by itself. If it keeps failing, report the message together with the sidecar’s log.',
};
const remedy = (reason) => REMEDIES[reason] ?? 'The message and the sidecar’s log name the cause. It is tried again by itself.';
const REASONS = {
  __proto__: null, 'not-quiet': 'GPU work did not end in time', capturing: 'a graph was being captured', unsupported: 'cannot be saved', dump: 'processes or files not saved',
  gpu: 'GPU or driver', job: 'the job needed its memory or ended', overwritten: 'memory written while it was copied', store: 'store or disk', 'too-slow': 'GPU memory left too slowly', fenced: 'another machine has the job',
  agent: 'the agent did not answer', internal: 'phos-ft itself',
};
const reasonWords = (reason) => REASONS[reason] ?? (text(reason) || 'unknown reason');

// ---- The model: what happened ------------------------------------------------------------------------------------------------

/** As many of each kind are kept, at least: the server keeps as many events. */
const KEPT = 4096;

function fresh() {
  return {
    seq: 0, first: null, last: null, version: '', log: [],
    // running | crashed | over | unknown, since when, and how it ended.
    phase: 'unknown', phaseAt: null, how: '', exit: '', endWords: '',
    rows: [], runs: [], holds: [], dark: [], copies: [], marks: [],
    begun: null, retried: 0, doubt: null,
    // From when on the job's work would be lost in a crash; the same in a loss of the machine, where that is known.
    safe: null, remoteHeld: null, newest: null, resumed: null,
    unprotected: null, waitsForStore: null, notRestored: null, damaged: null, stored: 0, failed: 0, crashes: 0,
  };
}

const lastOf = (items) => items[items.length - 1];
const isOpen = (spans) => spans.length > 0 && lastOf(spans).to === null;
const close = (spans, at) => { if (isOpen(spans)) lastOf(spans).to = Math.max(at, lastOf(spans).from); };

function trim(model) {
  for (const name of ['log', 'rows', 'runs', 'holds', 'dark', 'copies', 'marks']) {
    if (model[name].length > 2 * KEPT) model[name] = model[name].slice(-KEPT);
  }
}

/** The job runs from then on: what it does is lost in a crash until a checkpoint of it is stored. */
function runs(model, at, from) {
  // A job that is started again did not run since this sidecar's predecessor was last heard of.
  if (model.doubt !== null) close(model.runs, model.doubt);
  close(model.runs, at);
  model.runs.push({ from: at, to: null });
  Object.assign(model, { phase: 'running', phaseAt: at, doubt: null, safe: { at, from }, waitsForStore: null, notRestored: null });
}

function stops(model, at, phase, how) {
  close(model.runs, at);
  close(model.dark, at);
  Object.assign(model, { phase, phaseAt: at, how, doubt: null });
}

const mark = (model, at, kind, words) => model.marks.push({ at, kind, words });

const HANDLERS = {
  __proto__: null,
  'sidecar-started': (model, event) => {
    model.version = text(event.version);
    // A checkpoint in flight is lost with its sidecar. Whether the job ran on is said next.
    Object.assign(model, { begun: null, retried: 0 });
    if (isOpen(model.runs)) model.doubt = model.last;
    if (model.phase !== 'running' || isOpen(model.runs)) Object.assign(model, { phase: 'unknown', phaseAt: event.at_ms });
  },
  'job-started': (model, event) => {
    runs(model, event.at_ms, 'start');
    Object.assign(model, { newest: null, resumed: null, remoteHeld: null });
    mark(model, event.at_ms, 'resume', 'The job was started with its first step');
  },
  'job-found': (model, event) => {
    if (!isOpen(model.runs)) runs(model, event.at_ms, 'found');
    Object.assign(model, { phase: 'running', doubt: null });
  },
  'job-resumed': (model, event) => {
    runs(model, event.at_ms, 'resume');
    model.resumed = event;
    mark(model, event.at_ms, 'resume', describe(event));
  },
  'job-ended': (model, event) => {
    const how = text(event.how);
    model.exit = text(event.exit);
    model.endWords = '';
    stops(model, event.at_ms, how === 'crashed' ? 'crashed' : how ? 'over' : 'unknown', how);
    model.crashes += how === 'crashed' ? 1 : 0;
    mark(model, event.at_ms, how === 'crashed' ? 'crash' : 'end', describe(event));
  },
  // Whether the job runs on is known once an agent answers: `job-found`, `job-resumed`, or never.
  'agent-lost': (model, event) => {
    if (isOpen(model.runs)) model.doubt = event.at_ms;
    Object.assign(model, { phase: 'unknown', phaseAt: event.at_ms });
  },
  'given-up': (model, event) => {
    stops(model, model.phase === 'crashed' ? model.phaseAt : event.at_ms, 'over', 'given-up');
    model.endWords = text(event.message);
    mark(model, event.at_ms, 'end', describe(event));
  },
  fenced: (model, event) => {
    stops(model, event.at_ms, 'over', 'fenced');
    model.endWords = text(event.message);
    mark(model, event.at_ms, 'end', describe(event));
  },
  'checkpoint-started': (model, event) => Object.assign(model, { begun: { at: event.at_ms, trigger: event.trigger }, retried: 0 }),
  'quiesce-retried': (model, event) => {
    const held = number(event.held_ms);
    model.retried += held;
    model.holds.push({ from: event.at_ms - held, to: event.at_ms });
  },
  'checkpoint-stored': (model, event) => {
    const taken = number(event.taken_ms) || event.at_ms;
    const held = number(event.held_at_ms) || taken - SECOND * number(event.seconds);
    const stop = number(event.stop_ms);
    const row = { key: event.seq, kind: 'stored', at: held, held, taken, stop, report: event, copy: null };
    model.rows.push(row);
    model.holds.push({ from: held, to: held + stop, stores: Math.max(taken, held + stop) });
    model.begun = null;
    model.stored += 1;
    model.newest = row;
    model.safe = { at: held, from: 'checkpoint' };
    model.damaged = null;
    if (!event.local) model.remoteHeld = event.durability === 'local' ? null : held;
  },
  'checkpoint-failed': (model, event) => {
    const held = Math.max(0, number(event.stop_ms) - model.retried);
    if (held > 0) model.holds.push({ from: event.at_ms - held, to: event.at_ms });
    model.begun = null;
    model.failed += 1;
    model.rows.push({ key: event.seq, kind: 'failed', at: event.at_ms, stop: event.stop_ms, report: event });
    mark(model, event.at_ms, 'failed', describe(event));
  },
  'checkpoint-copied': (model, event) => {
    const row = model.rows.findLast((r) => r.kind === 'stored' && r.report.local && r.report.id === event.local);
    if (row) row.copy = { id: event.id, at: event.at_ms };
    model.remoteHeld = row ? row.held : number(event.taken_ms) || null;
    model.copies.push({ from: event.at_ms - SECOND * number(event.seconds), to: event.at_ms });
  },
  unprotected: (model, event) => {
    const since = Math.min(number(event.since_ms) || event.at_ms, event.at_ms);
    if (!isOpen(model.dark)) model.dark.push({ from: since, to: null });
    model.unprotected = { reason: event.reason, message: text(event.message) };
  },
  protected: (model, event) => {
    close(model.dark, event.at_ms);
    model.unprotected = null;
  },
  'store-unreachable': (model, event) => { model.waitsForStore = text(event.message); },
  'restore-failed': (model, event) => { model.notRestored = event; },
  damaged: (model, event) => { model.damaged = event; },
  'preemption-noticed': (model, event) => mark(model, event.at_ms, 'notice', describe(event)),
  'preemption-withdrawn': (model, event) => mark(model, event.at_ms, 'notice', describe(event)),
};

/** Takes one event into the model. */
function take(model, event) {
  if (!event || typeof event !== 'object' || number(event.seq) <= model.seq) return;
  if (!isTime(event.at_ms)) event.at_ms = model.last ?? 0;
  HANDLERS[event.event]?.(model, event);
  model.seq = event.seq;
  model.first ??= event.at_ms;
  model.last = event.at_ms;
  model.log.push(event);
  trim(model);
}

/** An event in a sentence. */
function describe(event) {
  const message = text(event.message) || 'no reason was given';
  const named = (value) => text(value) || '?';
  switch (event.event) {
    case 'sidecar-started': return `phos-ft ${text(event.version)} started`;
    case 'job-started': return `The job was started: ${list(event.command).join(' ')}`;
    case 'job-found': return 'The job was found running';
    case 'job-resumed': return `The job was resumed from checkpoint ${named(event.checkpoint)} (${event.place === 'local' ? 'on this machine' : 'in the store'}) in ${brief(event.seconds * SECOND)} `
      + `after ${event.after === 'crash' ? 'a crash' : 'a start of phos-ft'}; ${bytes(event.fetched_bytes)} of ${bytes(event.total_bytes)} had to be fetched`;
    case 'agent-lost': return `The agent is not heard of any more: ${text(event.message)}`;
    case 'job-ended': return event.how === 'finished' ? 'The job finished' : event.how === 'requested' ? `The job was ended on request (${named(event.exit)})` : `The job crashed (${named(event.exit)})`;
    case 'given-up': return `The job is not brought back: ${message}`;
    case 'checkpoint-started': return `A checkpoint was begun (${trigger(event.trigger)})`;
    case 'quiesce-retried': return `The job was held for ${brief(event.held_ms)} and let go: ${reasonWords(event.reason)}; it is tried again`;
    case 'checkpoint-stored': return `Checkpoint ${idOf(event)} was stored: the job was held for ${brief(event.stop_ms)}, ${bytes(event.changed_bytes)} of ${bytes(event.total_bytes)} had changed, `
      + `${bytes(event.stored_bytes)} were stored, ${brief(event.seconds * SECOND)} in all`;
    case 'checkpoint-failed': return `A checkpoint failed after holding the job for ${brief(event.stop_ms)}: ${message}`;
    case 'checkpoint-copied': return `Checkpoint L${named(event.local)} is in the store as ${named(event.id)}: ${bytes(event.sent_bytes)} sent in ${brief(event.seconds * SECOND)}`;
    case 'copy-failed': return `A checkpoint could not be copied to the store: ${message}`;
    case 'unprotected': return `The job is unprotected: ${message}`;
    case 'protected': return 'The job is protected again';
    case 'ruled-out': return `Checkpoints are ruled out: ${message}`;
    case 'possible': return 'Checkpoints are possible again';
    case 'restore-failed': return `Checkpoint ${named(event.checkpoint)} could not be restored; an older one is tried: ${message}`;
    case 'damaged': return `Checkpoint ${named(event.checkpoint)} is damaged: ${message}`;
    case 'store-unreachable': return `The store cannot be read, and the job waits for it: ${message}`;
    case 'fenced': return `Another machine has the job, which ends here: ${message}`;
    case 'preemption-noticed': return `This machine will be taken away${isNumber(event.ends_ms) ? ` at ${time(event.ends_ms, event.at_ms)}` : ''}: ${named(event.what)}, says ${named(event.source)}`;
    case 'preemption-withdrawn': return 'This machine stays after all';
    default: return `${named(event.event)}${event.message ? `: ${event.message}` : ''}`;
  }
}

// ---- What to say ---------------------------------------------------------------------------------------------------------------

// What the functions below are told as `world`: the model, the last status (or an empty one), since when nobody answers, the time.

/** What the job does: by the events, or by the status where those do not say. */
const phaseOf = ({ model, status }) =>
  model.phase === 'unknown' && /^(running|checkpointing)/.test(text(status.state)) ? 'running' : model.phase;

/** The newest checkpoint: of the events, or of the status where those do not go back far enough. */
function newest({ model, status }) {
  if (model.newest) return model.newest;
  const last = status.last;
  if (!last || model.log.some((event) => event.event === 'job-started')) return null;
  return { held: number(last.held_at_ms) || number(last.taken_ms), taken: number(last.taken_ms), stop: last.stop_ms, report: last, copy: null };
}

/** From when on work would be lost in a crash. */
const safeAt = (world) => Math.max(world.model.safe?.at ?? 0, newest(world)?.held ?? 0) || null;

const isDirectory = (report, status) => (report && report.durability ? report.durability === 'local' && !report.local : /^(file:|\/)/.test(text(status.store)));

function placeWords(world) {
  const last = newest(world);
  if (!last?.report.local) return 'in the store';
  return last.copy ? 'on this machine and in the store' : 'on this machine';
}

/** What would be lost, in a crash and with the machine: a label and a length in ms, or words. */
function risk(world) {
  const { model, status, now } = world;
  const phase = phaseOf(world), at = safeAt(world), last = newest(world);
  const nothing = { label: 'Would be lost if the job crashed now', words: '–', machineLabel: 'Would be lost with this machine', machineWords: '–' };
  if (phase === 'over' && model.how === 'finished') return { ...nothing, label: 'Lost', words: 'Nothing', machineWords: 'Nothing' };
  if (phase === 'unknown' || at === null) return nothing;
  const end = phase === 'running' ? now : number(model.phaseAt, now);
  const crash = { label: phase === 'running' ? (world.silentSince ? 'At risk when it last answered' : nothing.label) : phase === 'crashed' ? 'Lost in this crash' : 'Not in any checkpoint', ms: Math.max(0, end - at), machineLabel: world.silentSince ? 'The same, with this machine' : nothing.machineLabel };
  if (isDirectory(last?.report, status) && (last || model.resumed)) return { ...crash, machineWords: 'Everything, if the store is on it' };
  const held = last?.report.local ? model.remoteHeld ?? (number(status.remote?.taken_ms) || null) : at;
  return held === null ? { ...crash, machineWords: 'Everything: no copy in the store yet' } : { ...crash, machineMs: Math.max(0, end - held) };
}

/** How late the next checkpoint is: three intervals, and time to store two, are too much. */
function overdue(world) {
  const { status, now } = world, every = number(status.interval_seconds) * SECOND;
  const at = safeAt(world), whole = number(newest(world)?.report.seconds) * SECOND;
  return every > 0 && at !== null && phaseOf(world) === 'running' && now - at > 3 * every + 2 * whole + 5 * SECOND;
}

/** What rules protection out at present, the gravest first: since when, why, and what to do. */
function exposure(world) {
  const { model, status } = world, why = status.unprotected;
  const since = number(why?.since_ms) || safeAt(world);
  if (status.unsupported) return { problem: 'unsupported', since, why: text(status.unsupported), remedy: REMEDIES.unsupported };
  if (status.history_away) {
    return { problem: 'history-away', since, why: text(status.history_away),
      remedy: 'Bring back what the store showed before: mount its file system, or correct its address or endpoint. The job goes on meanwhile, and nothing is stored there. To do without those checkpoints for good, start once with `--start-fresh`.' };
  }
  if (!why) return null;
  const message = text(why.because);
  const row = model.rows.findLast((r) => r.kind === 'failed' && r.report.message === message);
  const reason = row?.report.reason ?? (model.unprotected?.message === message ? model.unprotected.reason : undefined);
  return { problem: 'unprotected', since, why: message, remedy: remedy(reason), reason };
}

const OVER = {
  __proto__: null,
  finished: ['The job is over: finished.', 'good', 'It is done, and will not be resumed.', 'Finished'],
  requested: ['The job is over: ended on request.', 'calm', 'The next start resumes it from its newest checkpoint.', 'Ended'],
  'given-up': ['The job is over: it is not brought back.', 'bad', '', 'GIVEN UP'],
  fenced: ['The job is over here: another machine has it.', 'bad', '', 'TAKEN OVER'],
};
const END_REMEDIES = {
  __proto__: null,
  'given-up': 'Look at the job’s own log. A job that crashes too often is brought back more often with `--max-restarts`; the next start of phos-ft resumes it from its newest checkpoint, if it has one.',
  fenced: 'To bring the job back here, end it on the other machine first, then start it here again.',
};

/** The state of everything in a sentence, with what follows from it. */
function verdict(world) {
  const { model, status, silentSince, now, heard } = world;
  const phase = phaseOf(world), last = newest(world), at = safeAt(world);
  const crashed = phase === 'crashed', state = text(status.state);
  if (phase === 'over') {
    const [headline, tone, detail, word] = OVER[model.how] ?? OVER.requested;
    const gone = silentSince ? ' The sidecar has ended as well.' : '';
    return { state: 'over', tone, word, headline, detail: `${model.endWords ? sentence(model.endWords) : detail}${gone}`, remedy: END_REMEDIES[model.how] };
  }
  if (silentSince) {
    return { state: 'unreachable', tone: 'warn', headline: `The sidecar has not answered since ${time(silentSince, world.real)} (${span(world.real - silentSince)}).`,
      detail: heard ? 'Below is what it said last. If only the sidecar is gone, the job runs on, without checkpoints.' : 'Nothing is known of the job.',
      remedy: 'Check that the sidecar runs and that this browser reaches it. This page goes on by itself once it answers.' };
  }
  if (!heard) return { state: 'waiting', tone: 'calm', headline: 'Connecting to the sidecar…', detail: '' };
  if (crashed) {
    const detail = model.waitsForStore ? 'The store cannot be read now; the job is resumed when it can.' : state && !/^running/.test(state) ? `The sidecar is ${state}.` : '';
    return { state: 'crashed', tone: 'bad', headline: `The job crashed ${ago(now - model.phaseAt)} (${model.exit || 'cause unknown'}); ${last || model.resumed ? 'it is being resumed.' : 'it has no checkpoint yet.'}`, detail };
  }
  if (phase !== 'running') return { state: 'waiting', tone: 'calm', headline: 'The job is not running yet.', detail: state ? `The sidecar says: ${state}.` : '' };
  const exposed = exposure(world);
  if (exposed) {
    const since = isTime(exposed.since) ? ` since ${time(exposed.since, now)} (${span(now - exposed.since)})` : '';
    return { state: 'unprotected', tone: 'bad', headline: `UNPROTECTED${since}.`, detail: exposed.why, remedy: exposed.remedy };
  }
  const every = number(status.interval_seconds);
  const plan = every > 0 ? `One is taken every ${span(Math.max(SECOND, every * SECOND))}.` : 'They are taken on demand only.';
  if (!last && !model.resumed) return { state: 'waiting', tone: 'calm', headline: 'No checkpoint yet.', detail: `The job has run for ${span(now - (at ?? now))}. ${plan.replace('One', 'A checkpoint').replace('They', 'Checkpoints')}` };
  const late = overdue(world), notice = status.preemption;
  const store = isDirectory(last?.report, status) ? 'The store is a directory: unless it is on another machine, it does not survive the loss of this one.' : '';
  const copied = last?.report.local && !last.copy ? (model.remoteHeld ? `The newest one in the store is ${span(now - model.remoteHeld)} old.` : 'None is in the store yet: none would survive the loss of this machine.') : '';
  const going = notice ? `This machine will be taken away${isNumber(notice.at_ms) ? ` in ${span(notice.at_ms - now)}` : ''}.` : '';
  const headline = model.safe?.from === 'resume' && model.safe.at >= (last?.held ?? 0)
    ? `Protected. The job was resumed from checkpoint ${text(model.resumed?.checkpoint) || '?'} ${ago(now - model.safe.at)}.`
    : `Protected. The newest checkpoint is ${span(now - at)} old and ${placeWords(world)}.`;
  return { state: 'protected', tone: late || notice ? 'warn' : 'good', headline, detail: [going, late ? `The next one is overdue. ${plan}` : '', copied, store].filter(Boolean).join(' ') };
}

/** What is wrong now, the gravest first. */
function problems(world) {
  const { model, status, now } = world, found = [];
  const phase = phaseOf(world), exposed = exposure(world);
  const add = (id, title, why, what, tone = 'bad') => found.push({ id, tone, title, why: text(why), remedy: what });
  if (phase === 'over') {
    if (END_REMEDIES[model.how]) add(model.how, OVER[model.how][0].replace(/^The job is over: it/, 'The job'), model.endWords, END_REMEDIES[model.how]);
  } else if (exposed && phase === 'running') {
    const titles = { unprotected: 'Checkpoints fail: what the job does now would be lost', unsupported: 'Checkpoints are ruled out by what the job uses', 'history-away': 'The store does not show what it showed before' };
    // The verdict has the message.
    const inRow = model.rows.length - 1 - model.rows.findLastIndex((r) => r.kind === 'stored');
    const failed = inRow ? `${inRow === 1 ? 'One attempt' : `${count(inRow, 'attempt')} in a row`} failed, the last one at ${time(lastOf(model.rows).at, now)}${exposed.reason ? `: ${reasonWords(exposed.reason)}` : ''}.` : '';
    add(exposed.problem, titles[exposed.problem], exposed.problem === 'unprotected' ? failed : exposed.why, exposed.remedy);
    if (status.unprotected && exposed.problem !== 'unprotected') add('unprotected', titles.unprotected, status.unprotected.because, remedy(model.unprotected?.reason));
    if (status.history_away && exposed.problem === 'unsupported') add('history-away', titles['history-away'], status.history_away, 'Mount the store’s file system, or correct its address.');
  }
  if (phase === 'crashed') {
    add('crashed', `The job crashed (${model.exit || 'cause unknown'})`, '', 'It is brought back by itself. If it crashes again and again, look at its own log: the cause is most likely the job’s. `--max-restarts` says how often it is brought back.');
  }
  if (status.preemption) {
    const { at_ms: at, source, what } = status.preemption;
    add('preemption', `This machine will be taken away${isNumber(at) ? ` at ${time(at, now)} (in ${span(at - now)})` : ''}`, `${text(what)}, says ${text(source) || 'an unknown source'}`,
      'A checkpoint is taken at once, and another one as late as it can be stored. Start the same command on another machine: the job continues there.', 'warn');
  }
  if (model.waitsForStore && phase !== 'running') add('store-unreachable', 'The store cannot be read, and the job waits for it', model.waitsForStore, 'Check the network and the store’s credentials. The job is resumed by itself once the store answers.');
  if (model.notRestored && phase !== 'running') add('restore-failed', `Checkpoint ${text(model.notRestored.checkpoint)} could not be restored`, model.notRestored.message, 'An older one is tried by itself. `phos-ft verify` says what is damaged.');
  if (model.damaged) add('damaged', `Checkpoint ${text(model.damaged.checkpoint)} is damaged`, model.damaged.message, '`phos-ft verify --deep` says what is damaged. The next checkpoint stores it again.');
  if (status.remote_failure) add('remote-failure', 'Checkpoints are not copied to the store', status.remote_failure, 'They stay on this machine, and the copy is tried again by itself. Check the network, and the store’s credentials and free space. On a slow link, give an `--upload-limit` below what it carries.');
  if (phase === 'running' && !exposed) {
    const row = lastOf(model.rows);
    if (row?.kind === 'failed') add('last-failure', `The last checkpoint failed: ${reasonWords(row.report.reason)}`, row.report.message, remedy(row.report.reason));
    else if (!row && !status.last && status.last_failure) add('last-failure', 'The last checkpoint failed', status.last_failure, remedy());
    if (overdue(world)) add('overdue', `The newest checkpoint is ${span(now - safeAt(world))} old`, 'One should have been stored by now.', 'The sidecar’s log says what it waits for. A store that takes longer than the interval needs a longer `--interval`.', 'warn');
  }
  if (status.collected?.failure) add('collection', 'Old checkpoints could not be removed', status.collected.failure, 'The job is not affected, but the store grows. Check that the sidecar may delete there.', 'warn');
  return found;
}

/** The parts of a stop that follow one another; the others (naming, copying) go on beside them. */
const PARTS = [
  ['quiesce', 'waiting for GPU work'], ['detach', 'detaching memory'], ['control_checkpoint', 'driver saves'], ['criu', 'saving processes'],
  ['control_restore', 'driver restores'], ['rest', 'copying off the GPU, other'], ['attach', 'attaching memory'], ['held_again', 'waiting for a copy'],
];
const BESIDE = { import: 'importing memory', name: 'finding what changed', hold_drain: 'copying off the GPU' };
const AFTER = { beside: 'copying what the job leaves alone', drain: 'copying the rest off the GPU', yielded: 'giving way to the job’s own copies', cpu_image: 'storing the processes', commit: 'making it visible' };

/** The stop as lengths in ms by part; what the parts do not explain is the rest. */
function partsOf(report) {
  const parts = report.parts_ms && typeof report.parts_ms === 'object' ? report.parts_ms : {};
  const known = PARTS.map(([name]) => number(parts[name]));
  const rest = number(report.stop_ms) - known.reduce((sum, ms) => sum + ms, 0);
  return PARTS.map(([name, words], i) => ({ name, words, ms: name === 'rest' ? Math.max(0, rest) : known[i] }));
}

function partsWords(report) {
  const of = (names) => Object.entries(names).filter(([name]) => isNumber(report.parts_ms?.[name])).map(([name, words]) => `${words} ${brief(report.parts_ms[name])}`).join(', ');
  const stop = partsOf(report).filter(({ ms }) => ms > 0).map(({ words, ms }) => `${words} ${brief(ms)}`).join(', ');
  const [beside, after] = [of(BESIDE), of(AFTER)];
  return `Stop: ${stop || 'no parts known'}.${beside ? ` Beside that: ${beside}.` : ''}${after ? ` While the job ran again: ${after}.` : ''}`;
}

// ---- The timeline --------------------------------------------------------------------------------------------------------------

const RANGES = [['10 min', 10 * MINUTE], ['1 h', HOUR], ['6 h', 6 * HOUR], ['All', Infinity]];
const STEPS = [10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY];

/** The shortest range that has the last ten checkpoints; all, if that is less. */
function defaultRange(model, now) {
  const first = model.first ?? now, from = model.rows[Math.max(0, model.rows.length - 10)]?.at ?? first;
  const fits = RANGES.findIndex(([, length]) => now - from <= length);
  return now - first < RANGES[fits][1] ? RANGES.length - 1 : fits;
}

/** Stretches of time in which the job did not run, between its runs and since the last. */
function gaps(model, now) {
  const found = model.runs.slice(1).map((run, i) => ({ from: model.runs[i].to ?? run.from, to: run.from })).filter(({ from, to }) => to > from);
  const last = lastOf(model.runs);
  if (last?.to && model.phase !== 'over') found.push({ from: last.to, to: now });
  return found;
}

/** Stretches of time as pixels: none narrower than `least`, those that touch made one. */
function segments(spans, scale, least) {
  const found = [];
  for (const { from, to } of spans) {
    if (to < scale.from || from > scale.to) continue;
    const left = scale.x(Math.max(from, scale.from));
    const right = Math.min(scale.width, Math.max(scale.x(Math.min(to, scale.to)), left + least));
    const last = lastOf(found);
    if (last && left <= last[1] + 0.5 && left >= last[0]) last[1] = Math.max(last[1], right);
    else found.push([left, right]);
  }
  return found;
}

const clipped = (spans, from, to) => spans.reduce((sum, s) => sum + Math.max(0, Math.min(s.to, to) - Math.max(s.from, from)), 0);
const closed = (spans, now) => spans.map((s) => ({ ...s, to: s.to ?? now }));

/** What the timeline shows, in words. */
function timelineWords(model, from, now, label) {
  const inside = (items) => items.filter(({ at }) => at >= from);
  const rows = inside(model.rows), holds = model.holds.filter((h) => h.to >= from);
  const stored = rows.filter((r) => r.kind === 'stored').length;
  const crashes = inside(model.marks).filter((m) => m.kind === 'crash').length;
  const down = clipped(gaps(model, now), from, now), dark = clipped(closed(model.dark, now), from, now);
  const failed = rows.length - stored ? `, ${count(rows.length - stored, 'failed', 'failed')}` : '';
  return [
    `${label}: ${count(stored, 'checkpoint')} stored${failed}; the job was ${holds.length ? `held ${times(holds.length)}, for ${brief(clipped(holds, from, now))} in all` : 'not held'}.`,
    `It ${crashes ? `crashed ${times(crashes)}` : 'did not crash'}${down > SECOND ? ` and did not run for ${span(down)}` : ''}.`,
    dark > 0 ? `It was unprotected for ${span(dark)}.` : '',
  ].filter(Boolean).join(' ');
}

/** What can be pointed at, oldest first. */
function points(model, from) {
  const rows = model.rows.filter((r) => r.kind === 'stored' && r.at >= from)
    .map((r) => ({ at: r.at, words: `Checkpoint ${idOf(r.report)}: job held for ${brief(r.stop)}, stored after ${brief(r.taken - r.held)}` }));
  return rows.concat(model.marks.filter((m) => m.at >= from)).sort((a, b) => a.at - b.at);
}

// ---- The document --------------------------------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';
function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) if (value != null) node.setAttribute(name, value);
  node.append(...children.filter((child) => child != null));
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);
const say = (node, words) => { if (node.textContent !== words) node.textContent = words; };
const stamp = (at, now) => (isTime(at) ? el('time', { datetime: utc(at), title: `${utc(at)} (UTC)` }, time(at, now)) : '–');
/** Our own words, with what is typed set as code. */
const rich = (words) => text(words).split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));
/** Writes a part of the document anew if what it is made from has changed. */
const written = new Map();
function renew(node, key, build) {
  if (written.get(node) === key) return;
  written.set(node, key);
  node.replaceChildren(...build());
}

/** A shape for each state, so that no colour has to be told from another: on a square of 24. */
const SHAPES = {
  protected: ['M12 2l8 3v6c0 5-3.4 9-8 11-4.6-2-8-6-8-11V5z', 'M8 12l3 3 5-6'],
  unprotected: ['M12 2.5L23 21.5H1z', 'M12 9v6M12 17.6v.6'],
  crashed: ['M7.5 2h9L22 7.5v9L16.5 22h-9L2 16.5v-9z', 'M8.5 8.5l7 7M15.5 8.5l-7 7'],
  over: ['M3 3h18v18H3z', 'M8 12.5l3 3 5.5-7'],
  waiting: ['M12 2a10 10 0 100 20 10 10 0 000-20z', 'M12 7v5.5l3.5 2'],
  unreachable: ['M12 2a10 10 0 100 20 10 10 0 000-20z', 'M9 9.2a3 3 0 115 2.3c-1.2.9-2 1.400-2 2.700M12 17.3v.5'],
};
const ICON_COLOURS = { good: '#18794e', bad: '#c62a2f', warn: '#9a5b00', calm: '#3e5c76' };
const WORDS = { protected: 'Protected', unprotected: 'UNPROTECTED', crashed: 'CRASHED', waiting: 'No checkpoint yet', unreachable: 'No answer' };

function shape(state) {
  const [outline, inside] = SHAPES[state];
  return svg('svg', { viewBox: '0 0 24 24', class: 'shape' }, svg('path', { d: outline, class: 'outline' }), svg('path', { d: inside, class: 'inside' }));
}
function icon(state, tone) {
  const [outline, inside] = SHAPES[state];
  const drawn = `<svg xmlns="${SVG}" viewBox="0 0 24 24"><path d="${outline}" fill="${ICON_COLOURS[tone]}"/><path d="${inside}" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(drawn)}`;
}

/** The verdict, what would be lost, and what the window's title and icon say of them. */
function showTop(world) {
  const said = verdict(world), box = $('verdict'), { status } = world;
  box.dataset.state = said.state;
  box.dataset.tone = said.tone;
  document.body.classList.toggle('stale', Boolean(world.silentSince) && said.state !== 'over');
  say($('headline'), said.headline);
  say($('detail'), said.detail ?? '');
  renew($('remedy'), said.remedy, () => (said.remedy ? [el('b', {}, 'What to do: '), ...rich(said.remedy)] : []));
  // A job that is over for a bad reason has the shape of a crash.
  const looks = said.state === 'over' && said.tone === 'bad' ? 'crashed' : said.state;
  renew($('mark'), looks, () => [shape(looks)]);
  const lost = risk(world);
  for (const [id, label, ms, words] of [['at-risk', lost.label, lost.ms, lost.words], ['at-risk-machine', lost.machineLabel, lost.machineMs, lost.machineWords]]) {
    say($(`${id}-label`), label);
    say($(id), ms === undefined ? words : span(ms));
    $(id).classList.toggle('sentence', ms === undefined && words.length > 12);
    if (ms === undefined) delete $(id).dataset.seconds;
    else $(id).dataset.seconds = String(Math.floor(ms / SECOND));
  }
  const word = said.word ?? (said.state === 'waiting' && phaseOf(world) !== 'running' ? 'Waiting' : WORDS[said.state]);
  const title = `${word} – ${text(status.job) || 'no job'} – phos-ft`;
  if (document.title !== title) document.title = title;
  const href = icon(looks, said.tone);
  if ($('icon').getAttribute('href') !== href) $('icon').setAttribute('href', href);
  showProblems(world, said);
}

function showProblems(world, said) {
  const found = said.state === 'unreachable' && !world.heard ? [] : problems(world);
  $('no-problems').hidden = found.length > 0;
  say($('no-problems'), !world.heard ? 'Nothing is known yet.' : said.state === 'unreachable' ? 'Nothing was wrong when the sidecar last answered.' : 'Nothing is wrong that the sidecar knows of.');
  $('problems-panel').dataset.tone = found.some(({ tone }) => tone === 'bad') ? 'bad' : found.length ? 'warn' : 'good';
  const items = found.map(({ id, tone, title, why, remedy: what }) => el('li', { 'data-problem': id, 'data-tone': tone }, el('h3', {}, title), why ? el('p', { class: 'why' }, why) : null, el('p', {}, ...rich(what))));
  renew($('problems'), JSON.stringify(found), () => items);
  // Spoken when the state or the set of problems changes, and not when a number does.
  const key = `${said.state} ${found.map(({ id }) => id).join(' ')}`;
  if (written.get('spoken') !== key) {
    written.set('spoken', key);
    const words = { protected: 'The job is protected.', unprotected: `The job is unprotected: ${said.detail}`, waiting: said.headline, over: said.headline, crashed: 'The job crashed.', unreachable: 'The sidecar does not answer.' };
    say($('announcement'), words[said.state] + (found.length ? ` ${count(found.length, 'problem')}: ${found.map(({ title }) => title).join('; ')}.` : ''));
  }
}

function showFacts({ status, model, silentSince }) {
  say($('job'), text(status.job) || '–');
  say($('sidecar'), silentSince ? 'no answer' : `${text(status.state) || 'connecting'}${model.version ? ` (phos-ft ${model.version})` : ''}`);
  say($('store'), text(status.store) || '–');
  say($('command'), list(status.command).map(text).join(' ') || '–');
}

/** The samples of an OpenMetrics text with this name, added up; `undefined` if there is none. */
function metric(samples, name, label = '') {
  let sum;
  for (const line of samples.split('\n')) {
    if (!line.startsWith(name) || !/^[ {]/.test(line.slice(name.length)) || !line.includes(label)) continue;
    const value = Number(line.slice(line.lastIndexOf('} ') + 1 || name.length).trim().split(' ')[0]);
    if (Number.isFinite(value)) sum = (sum ?? 0) + value;
  }
  return sum;
}

function showFigures({ status, model, metrics, now, heard }) {
  const held = model.rows.filter((r) => r.kind === 'stored' && r.stop > 0).map((r) => r.stop).sort((a, b) => a - b);
  const kept = metric(metrics, 'phos_goodput_ratio'), lost = metric(metrics, 'phos_lost_seconds_total');
  const stored = metric(metrics, 'phos_checkpoints_total', 'result="stored"') ?? model.stored;
  const failed = metric(metrics, 'phos_checkpoints_total', 'result="failed"') ?? model.failed;
  const grown = metric(metrics, 'phos_checkpoint_bytes_total', 'kind="stored"') ?? model.rows.reduce((sum, r) => sum + number(r.report.stored_bytes), 0);
  const last = model.newest?.stop ?? status.last?.stop_ms;
  const since = model.first ? `since ${time(model.first, now, shortClock)}` : '';
  const figures = [
    ['Kept training', kept === undefined ? '–' : `${digits[1].format(Math.floor(kept * 1000) / 10)}${NB}%`, 'of the time was training that is kept'],
    ['Lost in crashes', lost === undefined ? '–' : lost < 60 && lost > 0 ? brief(lost * SECOND) : span(lost * SECOND), 'of training had to be done again'],
    ['Last stop', brief(last), held.length ? `median ${brief(held[Math.floor((held.length - 1) / 2)])}, longest ${brief(lastOf(held))}` : 'no stop yet'],
    ['Interval', number(status.interval_seconds) > 0 ? span(Math.max(SECOND, status.interval_seconds * SECOND)) : heard ? 'On demand' : '–', 'between checkpoints'],
    ['Checkpoints', digits[0].format(stored), failed ? `stored, ${digits[0].format(failed)} failed` : 'stored, none failed'],
    ['Restarts', digits[0].format(metric(metrics, 'phos_restarts_total', 'reason="crash"') ?? number(status.restarts)), 'after crashes'],
    ['Stored', bytes(grown), since],
    ['GPU memory', number(status.device_bytes) ? bytes(status.device_bytes) : '–', 'at the last checkpoint'],
  ];
  renew($('figures'), JSON.stringify(figures), () => figures.map(([name, value, note]) => el('div', {}, el('dt', {}, name), el('dd', { class: 'value' }, value), el('dd', { class: 'note' }, note))));
}

/** The timeline: lanes of bands, marks above, the time below. */
const LANES = { marks: 12, job: 26, jobHeight: 40, storing: 72, copying: 86, thin: 9 };
const MARKS = { crash: 'M-6 -6L6 6M6 -6L-6 6', resume: 'M-5 -6L6 0L-5 6z', failed: 'M0 6L-6.500 -5H6.500z', notice: 'M-5 7V-7L6 -3.500L-5 0', end: 'M-5 -5H5V5H-5z' };
const LEGEND = [
  ['training', 'Training'], ['stop', 'Held for a checkpoint'], ['storing', 'Storing'], ['copying', 'Copying to the store'], ['down', 'Not running'], ['dark', 'Unprotected'],
  ['crash', 'Crash'], ['resume', 'Start or resume'], ['failed', 'Checkpoint failed'], ['notice', 'Notice that the machine goes'], ['end', 'End'],
];
const line = { range: null, chosen: null, scale: null, points: [], width: 0, drawn: null };

const hatch = (id) => svg('pattern', { id, class: id, width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('path', { d: 'M0 0H7V7H0z', class: 'ground' }), svg('path', { d: 'M0 0V7' }));
const band = (spans, scale, y, height, kind, least = 1) => {
  const d = segments(spans, scale, least).map(([a, b]) => `M${a.toFixed(1)} ${y}H${b.toFixed(1)}V${y + height}H${a.toFixed(1)}z`).join('');
  return d ? svg('path', { d, class: `band ${kind}` }) : null;
};

function axis(scale, y) {
  const step = STEPS.find((s) => scale.width / ((scale.to - scale.from) / s) >= 84) ?? lastOf(STEPS);
  const offset = new Date(scale.to).getTimezoneOffset() * MINUTE;
  const drawn = [];
  for (let at = Math.ceil((scale.from - offset) / step) * step + offset; at <= scale.to; at += step) {
    const x = scale.x(at);
    if (x < 18 || x > scale.width - 18) continue;
    const midnight = new Date(at).getHours() === 0 && new Date(at).getMinutes() === 0 && step >= 10 * MINUTE;
    drawn.push(svg('path', { d: `M${x.toFixed(1)} ${LANES.job - 4}V${y}`, class: 'grid' }));
    drawn.push(svg('text', { x: x.toFixed(1), y: y + 14, class: 'tick' }, midnight ? day.format(at) : (step < MINUTE ? clock : shortClock).format(at)));
  }
  return drawn;
}

function showTimeline({ model, now: today }) {
  // It ends with the job.
  const over = model.phase === 'over', now = over ? model.phaseAt + SECOND : today;
  const box = $('timeline'), width = Math.floor(box.clientWidth);
  const range = line.range ?? defaultRange(model, now), length = RANGES[range][1];
  for (const button of $('ranges').children) button.setAttribute('aria-pressed', String(Number(button.dataset.range) === range));
  const from = Math.min(now - 10 * SECOND, Number.isFinite(length) ? now - length : model.first ?? now);
  const scale = { from, to: now, width, x: (at) => ((at - from) / (now - from)) * width };
  const hasCopies = model.copies.length > 0, bottom = (hasCopies ? LANES.copying : LANES.storing) + LANES.thin + 4;
  line.scale = scale;
  line.points = points(model, from);
  if (width < 50) return;
  const storing = model.holds.filter((h) => h.stores).map((h) => ({ from: h.to, to: h.stores }));
  const { job, jobHeight, thin } = LANES;
  const children = [
    svg('defs', {}, hatch('hatch-down'), hatch('hatch-dark'), hatch('hatch-copying')),
    svg('path', { d: `M0 ${job}H${width}V${job + jobHeight}H0z`, class: 'lane' }),
    ...axis(scale, bottom),
    // Whether a job runs on under a new sidecar is not known until that says so.
    band(closed(model.runs, model.doubt ?? now), scale, job, jobHeight, 'training'),
    band(gaps(model, now), scale, job, jobHeight, 'down', 2),
    band(closed(model.dark, now), scale, job + 1, 16, 'dark', 3),
    band(model.holds, scale, job, jobHeight, 'stop', 2),
    band(storing, scale, LANES.storing, thin, 'storing', 1),
    hasCopies ? band(model.copies, scale, LANES.copying, thin, 'copying', 2) : null,
    ...marksOf(model, scale),
  ].filter(Boolean);
  box.replaceChildren(svg('svg', { width, height: bottom + 20, viewBox: `0 0 ${width} ${bottom + 20}`, 'aria-hidden': 'true', focusable: 'false' }, ...children));
  const label = Number.isFinite(length) ? `In the ${over ? 'job’s ' : ''}last ${RANGES[range][0].replace(' ', NB)}` : `Since ${time(model.first, now, shortClock)}`;
  say($('timeline-words'), model.log.length ? timelineWords(model, Math.max(from, model.first ?? from), now, label) : 'Nothing has happened yet.');
  const kinds = LEGEND.filter(([kind]) => kind === 'training' || kind === 'stop' || kind === 'storing' || (kind === 'copying' && hasCopies)
    || (kind === 'down' && clipped(gaps(model, now), from, now)) || (kind === 'dark' && clipped(closed(model.dark, now), from, now)) || model.marks.some((m) => m.kind === kind && m.at >= from));
  renew($('legend'), kinds.join(), () => kinds.map(([kind, words]) => el('li', {}, swatch(kind), words)));
  choose(line.chosen, false);
}

/** Marks; of those that would lie on each other, the newest of each kind. */
function marksOf(model, scale) {
  const seen = new Set();
  return model.marks.filter((m) => m.at >= scale.from && m.at <= scale.to).reverse().filter((m) => {
    const key = `${m.kind} ${Math.round(scale.x(m.at) / 7)}`;
    return !seen.has(key) && seen.add(key);
  }).map(({ at, kind }) => {
    const x = Math.min(scale.width - 8, Math.max(8, scale.x(at)));
    return svg('g', { class: `mark ${kind}` }, svg('path', { d: `M${x.toFixed(1)} ${LANES.marks + 7}V${LANES.job + LANES.jobHeight}`, class: 'stem' }),
      svg('path', { d: MARKS[kind], transform: `translate(${x.toFixed(1)} ${LANES.marks})`, class: 'sign' }));
  });
}

function swatch(kind) {
  const sign = MARKS[kind];
  return svg('svg', { width: 18, height: 16, viewBox: '0 0 18 16', 'aria-hidden': 'true', class: sign ? `mark ${kind}` : null },
    sign ? svg('path', { d: sign, transform: 'translate(9 8)', class: 'sign' }) : svg('path', { d: kind === 'stop' ? 'M7 1H11V15H7z' : 'M1 2H17V14H1z', class: `band ${kind}` }));
}

/** Points at one thing of the timeline, or at none. */
function choose(point, speak = true) {
  const { scale, points: all } = line, tip = $('tip'), box = $('timeline');
  const index = point ? all.findIndex((p) => p.at === point.at && p.words === point.words) : -1;
  const focus = index < 0 ? lastOf(all) : all[index];
  box.setAttribute('aria-valuemax', String(Math.max(0, all.length - 1)));
  box.setAttribute('aria-valuenow', String(index < 0 ? Math.max(0, all.length - 1) : index));
  const spoken = (p) => `${time(p.at, Date.now())}: ${p.words}`;
  // Where nobody points, it changes only with what there is: a value that changes by itself is read out.
  if (speak || index >= 0 || !box.matches(':focus')) box.setAttribute('aria-valuetext', focus ? spoken(focus) : 'Nothing yet');
  line.chosen = index < 0 ? null : focus;
  tip.hidden = index < 0;
  const root = box.firstElementChild;
  root?.querySelector('.cursor')?.remove();
  if (index < 0 || !root) return;
  const x = scale.x(focus.at);
  root.append(svg('path', { d: `M${x.toFixed(1)} 2V${LANES.storing + LANES.thin}`, class: 'cursor' }));
  say(tip, spoken(focus));
  const half = tip.offsetWidth / 2;
  tip.style.left = `${box.offsetLeft + Math.min(Math.max(0, x - half), Math.max(0, scale.width - 2 * half))}px`;
  tip.style.top = `${box.offsetTop - tip.offsetHeight - 4}px`;
}

function wireTimeline() {
  const box = $('timeline');
  RANGES.forEach(([words], i) => {
    const button = el('button', { type: 'button', 'data-range': i, 'aria-pressed': 'false' }, words.replace(' ', NB));
    button.addEventListener('click', () => { line.range = i; show(); });
    $('ranges').append(button);
  });
  box.addEventListener('keydown', (event) => {
    const all = line.points, at = line.chosen ? all.findIndex((p) => p.at === line.chosen.at && p.words === line.chosen.words) : all.length;
    const next = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - 10, PageUp: at + 10, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Escape') choose(null);
    if (next === undefined || !all.length) return;
    event.preventDefault();
    choose(all[Math.min(all.length - 1, Math.max(0, next))]);
  });
  box.addEventListener('pointermove', (event) => {
    if (!line.scale) return;
    const x = event.clientX - box.getBoundingClientRect().left;
    const distance = (p) => Math.abs(line.scale.x(p.at) - x);
    const near = line.points.reduce((best, p) => (best && distance(best) <= distance(p) ? best : p), null);
    choose(near && distance(near) <= 14 ? near : null, false);
  });
  box.addEventListener('pointerleave', () => { if (!box.matches(':focus')) choose(null, false); });
  box.addEventListener('blur', () => choose(null, false));
  new ResizeObserver(() => { if (box.clientWidth !== line.width) { line.width = box.clientWidth; show(); } }).observe(box);
}

/** The table. Rows are kept as long as what they show is the same. */
const SHOWN = 100;
const rowsDrawn = new Map();
let showsAll = false;

const cell = (label, attributes, ...children) => el('td', { role: 'cell', 'data-label': label, ...attributes }, ...children);

function whereWords(row, newestLocal, now) {
  const { report, copy } = row;
  if (!report.local) return [report.durability === 'local' ? 'store (a directory)' : 'store'];
  // The newest two are kept on the machine.
  const here = number(report.id) + 1 >= newestLocal;
  if (copy) return [here ? 'this machine and store, as ' : 'store, as ', text(copy.id), ' since ', stamp(copy.at, now)];
  return [here ? 'this machine only' : 'replaced by newer ones'];
}

function storedRow(row, world) {
  const { report } = row, { longest, newestLocal, now } = world;
  const scaled = (ms) => (ms / longest) * 120;
  let x = 0;
  const parts = partsOf(report).map(({ ms }, i) => {
    const left = x;
    x += scaled(ms);
    return ms > 0 ? svg('path', { d: `M${left.toFixed(1)} 0H${Math.max(left + 0.5, x - 1).toFixed(1)}V12H${left.toFixed(1)}z`, class: `part p${i}` }) : null;
  });
  const words = partsWords(report);
  return el('tr', { role: 'row', 'data-checkpoint': idOf(report) },
    el('th', { scope: 'row', role: 'rowheader' }, idOf(report)),
    cell('Time', {}, stamp(row.held, now)),
    cell('Why', {}, trigger(report.trigger)),
    cell('Stop', { class: 'number' }, brief(report.stop_ms)),
    cell('Parts of the stop', { class: 'parts' }, svg('svg', { width: 120, height: 12, viewBox: '0 0 120 12', role: 'img', 'aria-label': words }, svg('title', {}, words), ...parts)),
    cell('Changed', { class: 'number' }, bytes(report.changed_bytes)),
    cell('Copied', { class: 'number' }, bytes(report.copied_bytes)),
    cell('Stored', { class: 'number' }, bytes(report.stored_bytes)),
    cell('Image', { class: 'number' }, bytes(report.total_bytes)),
    cell('Stored after', { class: 'number' }, isNumber(report.seconds) ? brief(report.seconds * SECOND) : '–'),
    cell('Where it is', { class: 'where' }, ...whereWords(row, newestLocal, now)));
}

/** One that failed for the reason of the row above it says so, and no more. */
function failedRow({ report, at }, now, again) {
  return el('tr', { role: 'row', class: 'failed', 'data-failed': text(report.reason) || 'unknown' },
    el('th', { scope: 'row', role: 'rowheader' }, 'Failed'),
    cell('Time', {}, stamp(at, now)),
    cell('Why', {}, trigger(report.trigger)),
    cell('Stop', { class: 'number' }, brief(report.stop_ms)),
    cell('Reason', { colspan: 7, class: 'reason' }, el('b', {}, `${reasonWords(report.reason)}: `),
      ...(again ? ['as above'] : [text(report.message) || 'no message', '. ', el('span', { class: 'what' }, ...rich(remedy(report.reason)))])));
}

const underWay = (begun, now) => el('tr', { role: 'row', class: 'under-way', 'data-in-progress': '' }, el('th', { scope: 'row', role: 'rowheader' }, 'Now'),
  cell('Time', {}, stamp(begun.at, now)), cell('Why', {}, trigger(begun.trigger)), cell('State', { colspan: 8 }, 'A checkpoint is being taken.'));

function showTable({ model, now }) {
  const all = model.rows, rows = (showsAll ? all : all.slice(-SHOWN)).slice().reverse();
  const newestLocal = Math.max(0, ...rows.filter((r) => r.report.local).map((r) => number(r.report.id)));
  // In steps, so that one longer stop does not change every row.
  const most = Math.max(1, ...rows.filter((r) => r.kind === 'stored').map((r) => number(r.stop)));
  const longest = 2 ** (Math.ceil(Math.log2(most) * 2) / 2);
  const wanted = new Set();
  const drawn = rows.map((row, i) => {
    const above = rows[i - 1], again = row.kind === 'failed' && above?.kind === 'failed' && above.report.reason === row.report.reason && above.report.message === row.report.message;
    const key = JSON.stringify([longest, again, row.copy, sameDay(row.at, now), row.report.local ? number(row.report.id) + 1 < newestLocal : 0]);
    wanted.add(row.key);
    const known = rowsDrawn.get(row.key);
    if (known?.key === key) return known.node;
    const node = row.kind === 'stored' ? storedRow(row, { longest, newestLocal, now }) : failedRow(row, now, again);
    rowsDrawn.set(row.key, { key, node });
    return node;
  });
  for (const key of rowsDrawn.keys()) if (!wanted.has(key)) rowsDrawn.delete(key);
  const body = $('rows'), nodes = model.begun && model.phase === 'running' ? [underWay(model.begun, now), ...drawn] : drawn;
  if (nodes.length !== body.children.length || nodes.some((node, i) => body.children[i] !== node)) body.replaceChildren(...nodes);
  $('show-all').hidden = all.length <= SHOWN;
  say($('show-all'), showsAll ? `Show the newest ${SHOWN}` : `Show all ${digits[0].format(all.length)}`);
  $('checkpoints').hidden = $('phases').hidden = nodes.length === 0;
  say($('table-words'), all.length ? 'Older ones may have been removed since: phos-ft list says which are kept.' : 'No checkpoint has been taken yet.');
  renew($('phases'), 'once', () => [...PARTS.map(([, words], i) => el('li', {}, svg('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' }, svg('path', { d: 'M0 0H12V12H0z', class: `part p${i}` })), words))]);
}

const LOGGED = 300;
const ALARMS = new Set(['given-up', 'checkpoint-failed', 'copy-failed', 'unprotected', 'ruled-out', 'restore-failed', 'damaged', 'store-unreachable', 'fenced', 'preemption-noticed']);
const isAlarm = (event) => ALARMS.has(event.event) || (event.event === 'job-ended' && event.how === 'crashed');

function showLog({ model, now }) {
  if (!$('log-panel').open) return;
  renew($('log'), `${model.seq} ${model.first}`, () => model.log.slice(-LOGGED).reverse()
    .map((event) => el('li', { value: event.seq, 'data-event': text(event.event), class: isAlarm(event) ? 'alarm' : null }, stamp(event.at_ms, now), el('span', {}, describe(event)))));
  say($('log-words'), model.log.length > LOGGED ? `These are the newest ${LOGGED} of ${digits[0].format(model.log.length)}: phos-ft events shows all of them.` : '');
}

// ---- Live ----------------------------------------------------------------------------------------------------------------------

const live = { model: fresh(), status: {}, metrics: '', heard: false, contact: null, opened: Date.now(), misses: 0, skew: 0, source: null, queue: [], asked: false, behind: 0 };

function world() {
  const real = Date.now() + live.skew;
  // One miss may be the moment in which a sidecar is replaced by the next.
  const silentSince = live.misses >= 2 ? (live.contact ?? live.opened) + live.skew : null;
  return { model: live.model, status: live.status, metrics: live.metrics, heard: live.heard, silentSince, real, now: silentSince ?? real };
}

function show() {
  const seen = world();
  showTop(seen);
  showFacts(seen);
  showFigures(seen);
  showTimeline(seen);
  showTable(seen);
  showLog(seen);
}

/** Takes in what came, and writes the document once for all of it. */
function soon() {
  if (live.asked) return;
  live.asked = true;
  const flush = () => {
    live.asked = false;
    for (const data of live.queue.splice(0)) {
      try { take(live.model, JSON.parse(data)); } catch (error) { console.warn('an event could not be read', error); }
    }
    show();
  };
  // A hidden page draws no frames, but has a title and an icon.
  if (document.hidden) setTimeout(flush, 200);
  else requestAnimationFrame(flush);
}

let statusTimer = 0;
function askSoon(after) {
  clearTimeout(statusTimer);
  statusTimer = setTimeout(askStatus, after);
}

async function askStatus() {
  try {
    const answer = await fetch('/api/status', { signal: AbortSignal.timeout(4000), cache: 'no-store' });
    if (!answer.ok) throw new Error(`the sidecar answered ${answer.status}`);
    const status = await answer.json();
    // Ages are of the sidecar's clock, which may not be this one.
    const theirs = Date.parse(answer.headers.get('Date') ?? '') + 500 - Date.now();
    live.skew = Math.abs(theirs) > 2 * SECOND ? theirs : 0;
    if (live.heard && live.status.job !== status.job) startAnew();
    Object.assign(live, { status: status ?? {}, heard: true, contact: Date.now(), misses: 0 });
    compare(live.status);
  } catch {
    live.misses += 1;
  }
  askSoon(live.misses ? 1500 : 5000);
  soon();
}

/** A sidecar that lost its journal begins at 1 again: its events would be taken for old ones. Begins anew then, too. */
function compare(status) {
  const theirs = number(status.last?.taken_ms), ours = live.model.newest?.taken ?? 0;
  live.behind = theirs > ours && live.model.seq > 0 && !live.queue.length ? live.behind + 1 : 0;
  if (live.behind < 3) return;
  live.behind = 0;
  if (live.model.lastTried !== theirs) startAnew(theirs);
}

function startAnew(tried) {
  live.model = Object.assign(fresh(), { lastTried: tried });
  live.queue.length = 0;
  rowsDrawn.clear();
  listen();
}

function listen() {
  live.source?.close();
  const source = new EventSource(`/api/events?after=${live.model.seq}`);
  live.source = source;
  source.addEventListener('message', (event) => {
    live.queue.push(event.data);
    // What is the case now changed with it.
    if (live.queue.length === 1) askSoon(150);
    soon();
  });
  source.addEventListener('error', () => {
    askSoon(300);
    // It connects again by itself unless the answer was no stream.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (live.source === source) listen(); }, 3000);
  });
}

async function askMetrics() {
  try {
    const answer = await fetch('/metrics', { signal: AbortSignal.timeout(4000), cache: 'no-store' });
    if (answer.ok) live.metrics = await answer.text();
  } catch { /* The status says whether anybody answers. */ }
  setTimeout(askMetrics, 10 * SECOND);
}

function begin() {
  say($('zone'), `Times are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone}; each shows UTC when you point at it.`);
  wireTimeline();
  $('show-all').addEventListener('click', () => { showsAll = !showsAll; show(); });
  $('log-panel').addEventListener('toggle', () => showLog(world()));
  listen();
  askStatus();
  askMetrics();
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  let ticks = 0;
  setInterval(() => {
    const seen = world();
    showTop(seen);
    ticks += 1;
    // The timeline moves on by itself: every second, or now and then for those who want things to keep still.
    if (!seen.silentSince && !document.hidden && (!still.matches || ticks % 10 === 0)) showTimeline(seen);
  }, SECOND);
}

begin();
