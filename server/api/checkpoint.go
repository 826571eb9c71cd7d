package api

import (
	"github.com/ccship/ccship/server"
)

// checkpointAnswer is a checkpoint on the wire.
type checkpointAnswer struct {
	server.Checkpoint
	User string `json:"user"`
	Line *int64 `json:"line"`
}

func checkpointAnswerOf(c server.Checkpoint, names namesOf) checkpointAnswer {
	return checkpointAnswer{c, names[c.Owner], lineOrNull(c.Line)}
}

// lineOrNull is nil for no line.
func lineOrNull(line int64) *int64 {
	if line < 0 {
		return nil
	}
	return &line
}
