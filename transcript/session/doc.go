// Package session knows what the records of one transcript mean together. Fold folds them in file order into events
// and a summary, Log folds events into a short history, CheckpointDetector finds the moments for checkpoints, and Tree tells
// which records are part of the conversation as it stands. It is pure and bounded, and its states can be stored: it
// knows no files, no clock, and nothing of delivery.
package session
