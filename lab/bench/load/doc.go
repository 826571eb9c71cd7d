// Package load sends conversations to a server as daemons do, over the real protocol, and asks it as people do. It
// keeps no state on disk and tries nothing again that it was not asked to: it is what is measured with, not a daemon.
package load
