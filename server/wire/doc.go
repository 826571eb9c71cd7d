// Package wire reads the bodies that daemons send: lines, checkpoints, document events and uploads. What it returns is
// checked and bounded; what it refuses comes with a status and a code for the client. It does not know HTTP requests or
// the store.
package wire
