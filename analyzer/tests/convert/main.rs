//! `tmrun convert`: each rule of the mapping, over small recordings made for the point.

#[path = "../support/mod.rs"]
mod support;

mod cli;
mod damage;
mod gradients;
mod hostile;
mod make;
mod mapping;
mod neighbour;
mod selection;
mod steps;
mod threads;
mod values;
