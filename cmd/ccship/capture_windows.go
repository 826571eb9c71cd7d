package main

import (
	"os"
	"os/signal"
)

// catchSignals receives Ctrl-C, which the console sends to the command as well.
func catchSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt)
	return signals
}

func fromTerminal(os.Signal) bool { return true }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
