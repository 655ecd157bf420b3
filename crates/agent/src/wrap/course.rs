//! What to do when something happens to a wrapped program: values in, values out, no process and no clock.

use crate::sys::Received;

const INT: u8 = 2;
const QUIT: u8 = 3;
const KILL: u8 = 9;
const TERM: u8 = 15;
const CHLD: u8 = 17;
const STOP: u8 = 19;
const TSTP: u8 = 20;
const TTIN: u8 = 21;
const TTOU: u8 = 22;
const WINCH: u8 = 28;
/// The highest number of a signal, real-time ones included.
const LAST: u8 = 64;

/// The kernel sends them for a fault of the process itself: ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS.
const FAULTS: [u8; 7] = [4, 5, 6, 7, 8, 11, 31];
/// A terminal sends them to every process in its foreground, so the child has them already.
const OF_TERMINAL: [u8; 6] = [INT, QUIT, TSTP, TTIN, TTOU, WINCH];
/// Container runtimes stop programs with one of these.
const ASKING_TO_END: [u8; 3] = [INT, QUIT, TERM];

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The wrapper was signalled.
    Signal(Received),
    /// All awaited mains have permanently ended.
    MainsEnded,
    /// The time since `StartGrace` is over.
    GraceOver,
    /// The program ended, with this code.
    ChildEnded(u8),
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Signal the program.
    Send(u8),
    /// Say when the grace is over.
    StartGrace,
    /// End with this code.
    Exit(u8),
}

/// How far a wrapped program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It runs as long as it likes.
    Running {
        /// Somebody else has asked it to end.
        asked: bool,
    },
    /// It has been asked to end because the mains have.
    Stopping,
}

impl Default for Course {
    fn default() -> Self {
        Self::Running { asked: false }
    }
}

impl Course {
    /// Takes the next event.
    pub(super) fn take(&mut self, event: Event) -> Vec<Action> {
        match (*self, event) {
            (Self::Running { asked }, Event::Signal(received)) => {
                let actions = forward(received);
                *self = Self::Running { asked: asked || ASKING_TO_END.contains(&received.number) };
                actions
            }
            (Self::Running { asked }, Event::MainsEnded) => {
                *self = Self::Stopping;
                // Many programs take a second request for an order to drop everything.
                if asked { vec![Action::StartGrace] } else { vec![Action::Send(TERM), Action::StartGrace] }
            }
            // As above: it has been asked.
            (Self::Stopping, Event::Signal(received)) if received.number != TERM => forward(received),
            (Self::Stopping, Event::GraceOver) => vec![Action::Send(KILL)],
            (Self::Stopping, Event::ChildEnded(_)) => vec![Action::Exit(0)],
            (Self::Running { .. }, Event::ChildEnded(code)) => vec![Action::Exit(code)],
            (Self::Stopping, Event::Signal(_) | Event::MainsEnded) | (Self::Running { .. }, Event::GraceOver) => vec![],
        }
    }
}

/// All that a wrapper can receive and make something of: CHLD for itself, the others for its program.
pub(super) fn received_signals() -> impl Iterator<Item = u8> {
    (1..=LAST).filter(|number| ![KILL, STOP].contains(number) && !FAULTS.contains(number))
}

fn forward(Received { number, by_kernel }: Received) -> Vec<Action> {
    let has_it = number == CHLD || by_kernel && OF_TERMINAL.contains(&number);
    if has_it { vec![] } else { vec![Action::Send(number)] }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HUP: u8 = 1;
    const USR1: u8 = 10;

    fn from_process(number: u8) -> Event {
        Event::Signal(Received { number, by_kernel: false })
    }

    fn from_kernel(number: u8) -> Event {
        Event::Signal(Received { number, by_kernel: true })
    }

    fn play(events: &[Event]) -> Vec<Vec<Action>> {
        let mut course = Course::default();
        events.iter().map(|event| course.take(*event)).collect()
    }

    #[test]
    fn a_program_that_ends_by_itself_gives_its_code() {
        assert_eq!(play(&[Event::ChildEnded(0)]), [[Action::Exit(0)]]);
        assert_eq!(play(&[Event::ChildEnded(3)]), [[Action::Exit(3)]]);
        assert_eq!(play(&[from_process(TERM), Event::ChildEnded(143)]), [[Action::Send(TERM)], [Action::Exit(143)]]);
    }

    #[test]
    fn after_the_mains_it_is_asked_then_killed_and_any_end_is_well() {
        assert_eq!(
            play(&[Event::MainsEnded, Event::GraceOver, Event::ChildEnded(137)]),
            [vec![Action::Send(TERM), Action::StartGrace], vec![Action::Send(KILL)], vec![Action::Exit(0)]]
        );
        assert_eq!(
            play(&[Event::MainsEnded, Event::ChildEnded(143)]),
            [vec![Action::Send(TERM), Action::StartGrace], vec![Action::Exit(0)]]
        );
    }

    #[test]
    fn it_is_asked_to_end_once_whoever_is_first() {
        for number in [INT, QUIT, TERM] {
            assert_eq!(
                play(&[from_process(number), Event::MainsEnded, Event::GraceOver]),
                [vec![Action::Send(number)], vec![Action::StartGrace], vec![Action::Send(KILL)]]
            );
        }
        assert_eq!(
            play(&[Event::MainsEnded, from_process(TERM), from_process(USR1)]),
            [vec![Action::Send(TERM), Action::StartGrace], vec![], vec![Action::Send(USR1)]]
        );
        // No request to end, so it is still asked.
        assert_eq!(
            play(&[from_process(HUP), Event::MainsEnded]),
            [vec![Action::Send(HUP)], vec![Action::Send(TERM), Action::StartGrace]]
        );
    }

    #[test]
    fn two_requests_of_a_person_are_both_passed_on() {
        assert_eq!(play(&[from_process(TERM), from_process(TERM)]), [[Action::Send(TERM)], [Action::Send(TERM)]]);
    }

    #[test]
    fn what_a_terminal_sends_to_all_is_not_sent_twice() {
        for number in OF_TERMINAL {
            assert_eq!(play(&[from_kernel(number)]), [[]]);
            assert_eq!(play(&[from_process(number)]), [[Action::Send(number)]]);
        }
        // A terminal that hangs up tells the session's leader only.
        assert_eq!(play(&[from_kernel(HUP)]), [[Action::Send(HUP)]]);
    }

    #[test]
    fn all_signals_are_received_but_faults_and_what_cannot_be_caught() {
        let received: Vec<u8> = received_signals().collect();
        let left_out: Vec<u8> = (1..=64).filter(|number| !received.contains(number)).collect();
        assert_eq!(left_out, [4, 5, 6, 7, 8, 9, 11, 19, 31]);
        assert_eq!(received.len(), 55);
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (1..=LAST, any::<bool>()).prop_map(|(number, by_kernel)| Event::Signal(Received { number, by_kernel })),
            Just(Event::MainsEnded),
            Just(Event::GraceOver),
        ]
    }

    proptest! {
        #[test]
        fn it_exits_only_when_the_child_has_ended_with_0_exactly_after_the_mains(
            events in prop::collection::vec(event(), 0..20),
            code: u8,
        ) {
            let mut course = Course::default();
            for event in &events {
                prop_assert!(!course.take(*event).iter().any(|action| matches!(action, Action::Exit(_))));
            }
            let expected = if events.contains(&Event::MainsEnded) { 0 } else { code };
            prop_assert_eq!(course.take(Event::ChildEnded(code)), vec![Action::Exit(expected)]);
        }
    }
}
