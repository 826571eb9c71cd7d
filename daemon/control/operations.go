package control

import (
	"net/http"
	"reflect"
	"slices"
)

// operation is one request that the socket answers. Both the routes and the OpenAPI document are made from these.
type operation struct {
	method, path string
	id           string // its name in the OpenAPI document
	call
	summary, description string
	query                []parameter
	codes                []string // of errors that a program may act on
	media                string   // type of the answer when it is not one JSON document
}

// call is a handler with the types of its JSON: nil where there is no body, or no JSON.
type call struct {
	handle          http.HandlerFunc
	request, answer reflect.Type
}

var errorType = reflect.TypeFor[Error]()

// answers is a handler that reads its own request and answers an A.
func answers[A any](handle http.HandlerFunc) call {
	return call{handle: handle, answer: reflect.TypeFor[A]()}
}

const ofSession = "a session's name, or a prefix that only one session has"

// operations lists everything that the socket answers, except the profiles of pprof.
func (s *Endpoint) operations() []operation {
	return slices.Concat(
		s.observed(), s.delivery(), s.queue(), s.settings(), s.messageLog(), s.checkpointList(), s.documentList(), s.inbox(),
	)
}

func (s *Endpoint) observed() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/v1/status", id: "status", call: answers[Status](s.status),
			summary: "What the daemon is doing",
			description: "With probe, servers that have not answered for 10 seconds are asked for an answer, within one " +
				"second. The daemon sends no such request by itself.",
			query: []parameter{optional("probe", "wait: answer with what the probes find; behind: do not wait for them")},
		},
		{
			method: http.MethodGet, path: "/v1/sessions", id: "sessions", call: answers[Sessions](s.sessions),
			summary: "Main transcripts on disk, most recently changed first, and totals",
			query:   append(pages(defaultPage), optional("project", "a project, or the folder of sessions")),
		},
		{
			method: http.MethodGet, path: "/v1/events", id: "events", call: answers[Event](s.events),
			media:   "text/event-stream",
			summary: "Events from now on",
			description: "Server-sent events. An event's data is one Event, and its name is the Event's type. The first is " +
				"a status. A comment is sent after 15 seconds without an event. A reader that is too slow is disconnected.",
			codes: []string{CodeTooMany},
		},
		{
			method: http.MethodGet, path: "/v1/openapi", id: "openapi", call: answers[object](s.openAPI),
			media:   "application/openapi+json",
			summary: "This document",
		},
		{
			method: http.MethodGet, path: "/metrics", id: "metrics", call: call{handle: s.metrics}, media: "text/plain",
			summary: "Metrics in Prometheus' text format",
		},
	}
}

func (s *Endpoint) delivery() []operation {
	d := s.daemon
	return []operation{
		{
			method: http.MethodPost, path: "/v1/sync", id: "sync", call: post(s, s.sync),
			summary: "Read every transcript now",
			description: "Ends back-off and every pause, the user's own too. With wait it answers when every whole line on " +
				"disk is acknowledged or known not to be sent, or when the timeout expires.",
		},
		{
			method: http.MethodPost, path: "/v1/verify", id: "verify", media: "application/x-ndjson",
			call:    call{s.verify, reflect.TypeFor[VerifyRequest](), reflect.TypeFor[VerifyEvent]()},
			summary: "Compare the disk with the server",
			description: "Syncs, then reads every transcript from its first byte. With repair, what is missing or different " +
				"is sent again, and everything is compared once more. The answer has one JSON document a line: progress, or " +
				"{} when there is none, and at the end a report or an error.",
		},
		{
			method: http.MethodPost, path: "/v1/resend", id: "resend", call: post(s, d.Resend),
			summary: "Send transcripts again from the first line that the server lacks or holds differently",
			description: "The lines go to a new generation, so that nothing stored is overwritten. Sessions that are excluded " +
				"or were forgotten are not sent.",
		},
		{
			method: http.MethodPost, path: "/v1/pause", id: "pause", call: post(s, d.Pause),
			summary:     "Stop sending, for a time or until resumed",
			description: "Transcripts are still read into the outbox, up to its cap. The pause survives a restart.",
		},
		{
			method: http.MethodPost, path: "/v1/resume", id: "resume", call: get(s, d.Resume),
			summary: "End the user's pause",
		},
		{
			method: http.MethodPost, path: "/v1/flush", id: "flush", call: get(s, d.Flush),
			summary:     "End back-off: try every server now",
			description: "The user's own pause stays in force.",
		},
		{
			method: http.MethodPost, path: "/v1/forget", id: "forget", call: post(s, d.Forget),
			summary: "Remove a session everywhere but on disk",
			description: "Records that the session is never sent again, removes what is queued of it and its agents, and " +
				"asks the servers to remove it. Servers that cannot be reached now are asked later: " +
				"the answer lists them as pending.",
			codes: []string{CodeNoSession},
		},
	}
}

func (s *Endpoint) queue() []operation {
	d := s.daemon
	return []operation{
		{
			method: http.MethodGet, path: "/v1/outbox", id: "outbox", call: answers[OutboxList](s.outbox),
			summary: "What is queued, oldest first",
			query:   pages(defaultPage),
		},
		{
			method: http.MethodGet, path: "/v1/outbox/dead", id: "deadLetters", call: get(s, d.DeadLetters),
			summary: "Dead letters: entries that a server refuses for what they are",
		},
		{
			method: http.MethodPost, path: "/v1/outbox/dead/retry", id: "retryDead", call: post(s, d.RetryDead),
			summary:     "Queue dead letters again",
			description: "All that are named, or none when one of them does not exist.",
			codes:       []string{CodeNoDeadLetter},
		},
		{
			method: http.MethodPost, path: "/v1/outbox/dead/drop", id: "dropDead", call: post(s, d.DropDead),
			summary:     "Remove dead letters permanently",
			description: "Their lines count as missing from then on.",
			codes:       []string{CodeNoDeadLetter},
		},
		{
			method: http.MethodPost, path: "/v1/outbox/drop", id: "dropServer", call: post(s, d.DropServer),
			summary:     "Discard everything queued for a retired server",
			description: "Only for a server that gets no new lines. Its dead letters are discarded too.",
		},
	}
}

func (s *Endpoint) settings() []operation {
	d := s.daemon
	return []operation{
		{
			method: http.MethodPost, path: "/v1/redact/apply", id: "remask", call: post(s, d.Remask),
			summary:     "Send again what the rules of masking in force change",
			description: "The first request syncs. Repeat it with the answer's next as offset until that is 0.",
		},
		{
			method: http.MethodGet, path: "/v1/exclude", id: "excludes", call: get(s, d.Excludes),
			summary: "What keeps transcripts from being delivered",
		},
		{
			method: http.MethodPost, path: "/v1/exclude", id: "exclude", call: post(s, d.Exclude),
			summary:     "Add a pattern to exclude_projects",
			description: "Edits the configuration file and applies it at once.",
			codes:       []string{CodeConfig},
		},
		{
			method: http.MethodDelete, path: "/v1/exclude", id: "include", call: answers[Excludes](s.include),
			summary:     "Remove a pattern from exclude_projects",
			description: "Edits the configuration file and applies it at once.",
			query:       []parameter{needed("pattern", "")},
			codes:       []string{CodeConfig, CodeNoPattern},
		},
		{
			method: http.MethodPost, path: "/v1/reload", id: "reload", call: get(s, d.Reload),
			summary: "Read the configuration again",
			codes:   []string{CodeConfig},
		},
	}
}

func (s *Endpoint) messageLog() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/v1/messages", id: "messages", call: answers[Messages](s.messages),
			summary: "The recent messages of a session, oldest first",
			description: "Those of the transcript as it is now: after a rewind, of the new branch. The offset counts from the " +
				"newest message; limit 0 returns all that are kept.",
			query: append(pages(0), needed("session", ofSession)),
			codes: []string{CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodDelete, path: "/v1/messages", id: "clearMessages", call: answers[ClearResult](s.clearMessages),
			summary:     "Discard the recent messages of a session",
			description: "New messages are kept again. The transcript does not change.",
			query:       []parameter{needed("session", ofSession)},
			codes:       []string{CodeNoSession, CodeAmbiguous},
		},
	}
}

func (s *Endpoint) checkpointList() []operation {
	d := s.daemon
	return []operation{
		{
			method: http.MethodGet, path: "/v1/checkpoints", id: "checkpoints", call: answers[Checkpoints](s.checkpoints),
			summary:     "Checkpoints of one session or of all, newest first",
			description: "Of one session, the answer includes everything up to its last line.",
			query:       append(pages(defaultPage), optional("session", ofSession)),
			codes:       []string{CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodPost, path: "/v1/checkpoints", id: "createCheckpoint", call: post(s, d.CreateCheckpoint),
			summary: "Make a checkpoint of a session as it is now",
			codes:   []string{CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodGet, path: "/v1/checkpoint", id: "checkpoint", call: answers[CheckpointAnswer](s.checkpoint),
			summary: "One checkpoint",
			query:   []parameter{needed("id", "")},
			codes:   []string{CodeNoCheckpoint},
		},
		{
			method: http.MethodGet, path: "/v1/budget", id: "budgets", call: answers[Budgets](s.budgets),
			summary: "The token budget of a session, or every known budget",
			query:   []parameter{optional("session", ofSession)},
			codes:   []string{CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodPut, path: "/v1/budget", id: "setBudget", call: post(s, d.SetBudget),
			summary:     "Set the token budget of a session, or of every session with a model",
			description: "Thresholds already exceeded under the new budget make no checkpoint.",
			codes:       []string{CodeNoSession, CodeAmbiguous},
		},
	}
}

func (s *Endpoint) documentList() []operation {
	d := s.daemon
	return []operation{
		{
			method: http.MethodGet, path: "/v1/documents", id: "documents", call: answers[Documents](s.documents),
			summary: "The documents linked to a session",
			query:   []parameter{needed("session", ofSession)},
			codes:   []string{CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodPost, path: "/v1/documents", id: "linkDocument", call: post(s, d.LinkDocument),
			summary:     "Link a file to a session",
			description: "Linking a file that is already linked does nothing.",
			codes:       []string{CodeDocument, CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodDelete, path: "/v1/documents", id: "unlinkDocument", call: post(s, d.UnlinkDocument),
			summary:     "Unlink a file from a session",
			description: "The file need not exist any more. Versions on the server stay.",
			codes:       []string{CodeDocument, CodeNoSession, CodeAmbiguous},
		},
		{
			method: http.MethodPost, path: "/v1/documents/answer", id: "answerLink", call: post(s, d.AnswerLink),
			summary: "Make an answer of ccship-mcp to Claude count",
			description: "The daemon links and unlinks what the answers of ccship-mcp in a transcript ask for. The nonce in " +
				"an answer distinguishes it from a forged one.",
		},
	}
}

func (s *Endpoint) inbox() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/v1/init", id: "init", call: answers[Init](s.init),
			summary: "What a session's Claude is shown at its start",
			description: "Also for sessions without a transcript. The same at every start until the session's documents " +
				"change. Answers within a few milliseconds.",
			query: []parameter{
				needed("session", "the session's whole id"),
				optional("cwd", "where the session was started; for a session that is not known yet"),
				optional("confirm", "true: return the receipt to /v1/pending, or a later hook gets the text"),
				optional("title", "the name that the user gave the session"),
				optional("source", "why the session starts, as Claude Code says it: startup, resume, fork, clear, compact"),
			},
		},
		{
			method: http.MethodPost, path: "/v1/pending", id: "pending", call: post(s, s.daemon.Pending),
			summary: "Take the notices that a session's Claude has not been shown yet",
			description: "An introduction that no hook has passed on, and notices. With confirm, they count as passed on when " +
				"a second request returns the receipt, best over the same connection: when that ends, or after some seconds, " +
				"they are there for the next request. A notice that the transcript does not show a minute later comes once " +
				"more. Answers within a few milliseconds, unless a tool is named.",
		},
	}
}
