package control

import "net/http"

// operations returns the handlers of everything that the socket answers, except the profiles of pprof, by method and
// path.
func (s *Endpoint) operations() map[string]http.HandlerFunc {
	d := s.daemon
	return map[string]http.HandlerFunc{
		"GET /v1/status":             s.status,
		"GET /v1/sessions":           asked(s, sessionsQuery, d.Sessions),
		"GET /metrics":               s.metrics,
		"POST /v1/sync":              post(s, s.sync),
		"POST /v1/verify":            s.verify,
		"POST /v1/resend":            post(s, d.Resend),
		"POST /v1/pause":             post(s, d.Pause),
		"POST /v1/resume":            get(s, d.Resume),
		"POST /v1/flush":             get(s, d.Flush),
		"POST /v1/forget":            post(s, d.Forget),
		"GET /v1/outbox":             asked(s, page, d.Outbox),
		"GET /v1/outbox/dead":        get(s, d.DeadLetters),
		"POST /v1/outbox/dead/retry": post(s, d.RetryDead),
		"POST /v1/outbox/dead/drop":  post(s, d.DropDead),
		"POST /v1/outbox/drop":       post(s, d.DropServer),
		"POST /v1/redact/apply":      post(s, d.Remask),
		"GET /v1/exclude":            get(s, d.Excludes),
		"POST /v1/reload":            get(s, d.Reload),
		"GET /v1/messages":           asked(s, messagesQuery, d.Messages),
		"DELETE /v1/messages":        asked(s, needed("session"), d.ClearMessages),
		"GET /v1/checkpoints":        asked(s, checkpointsQuery, d.Checkpoints),
		"POST /v1/checkpoints":       post(s, d.CreateCheckpoint),
		"GET /v1/checkpoint":         asked(s, needed("id"), d.Checkpoint),
		"GET /v1/budget":             asked(s, value("session"), d.Budgets),
		"PUT /v1/budget":             post(s, d.SetBudget),
		"GET /v1/documents":          asked(s, needed("session"), d.Documents),
		"POST /v1/documents":         post(s, d.LinkDocument),
		"DELETE /v1/documents":       post(s, d.UnlinkDocument),
		"POST /v1/documents/answer":  post(s, d.AnswerLink),
		"GET /v1/init":               asked(s, initQuery, d.Init),
		"POST /v1/pending":           post(s, d.Pending),
	}
}
