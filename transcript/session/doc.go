// Package session derives what the records of one transcript mean together. Fold turns records into events and a
// summary, Log turns events into a recent history, and CheckpointDetector finds the moments for checkpoints. The
// package is pure and bounded, and its states can be stored: it knows no files, no clock and nothing of delivery.
package session
