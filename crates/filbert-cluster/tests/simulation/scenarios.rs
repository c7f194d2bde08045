//! Scenarios that found defects in other systems, one test each.
