package doctor

import (
	"context"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/protocol"
)

// checkMasking says whether secrets are masked for the server, and by which setting.
func checkMasking(ctx context.Context, x *exam) []Finding {
	server, mode := x.o.Config.ServerURL, x.o.Config.Redact
	if x.o.ConfigErr != nil || server == "" {
		return nil
	}
	const turnOn = "`ccship config redact on`"
	switch p := x.server(); {
	case mode == "on":
		return fine("secrets are masked before they are sent (redact is on)")
	case mode == "off":
		return []Finding{{Level: Note, Text: "secrets are not masked (redact is off)", Fix: turnOn}}
	case !project.Loopback(server):
		return fine("secrets are masked before they are sent (redact is auto)")
	case p.err == nil && !p.kind.Extension:
		return []Finding{{Level: Note, Text: "secrets are not masked for " + server + " (redact is auto)",
			Detail: "a plain server at a loopback address counts as this machine; a tunnel may end there", Fix: turnOn}}
	case protocol.AskSameHost(ctx, server) == nil:
		return fine("secrets are not masked: " + server + " proves that it is on this machine (redact is auto)")
	}
	return fine("secrets are masked: " + server + " does not prove that it is on this machine (redact is auto)")
}
