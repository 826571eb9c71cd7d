package server

import "time"

// SetBeat sets the time between heartbeats.
func SetBeat(s *Server, d time.Duration) { s.beat = d }
