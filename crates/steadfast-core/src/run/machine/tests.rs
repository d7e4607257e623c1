//! The machine by scenarios: a plan, what happens to it, and what it does about it.
