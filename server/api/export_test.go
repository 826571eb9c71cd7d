package api

import "time"

// SetLinkRequestsStale sets how long it is believed whether link requests wait.
func SetLinkRequestsStale(s *Server, d time.Duration) { s.linkCache.stale = d }

// SetBeat sets the time between heartbeats, and has keys checked whenever a piece of a body is read.
func SetBeat(s *Server, d time.Duration) { s.beat, s.recheck = d, 0 }
