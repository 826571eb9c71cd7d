package main

import (
	"io"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// progressEvery is how often a long piece of work says how far it is.
const progressEvery = 2 * time.Second

// progress says now and then how far work is. It is silent about work that is soon done.
type progress struct {
	w    io.Writer
	next time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w, time.Now().Add(progressEvery)} }

func (p *progress) say(format string, args ...any) {
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(progressEvery)
		term.Printf(p.w, format+"\n", args...)
	}
}
