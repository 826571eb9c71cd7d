// Package hub subscribes once to a store's changes and passes them on to any number of listeners. A slow listener loses
// detail, and never blocks the others. It does not know who listens or how a change reaches them.
package hub
