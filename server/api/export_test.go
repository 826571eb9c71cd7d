package api

import "time"

// SetWishesStale sets how long it is believed whether wishes wait.
func SetWishesStale(s *Server, d time.Duration) { s.wishing.stale = d }

// SetBeat sets the time between heartbeats.
func SetBeat(s *Server, d time.Duration) { s.beat = d }
