// Package wire reads the bodies that daemons send: lines, checkpoints, document events and uploads. It checks and
// limits what it returns, and refuses the rest with a status and a code for the client. It does not know HTTP requests
// or the store.
package wire
