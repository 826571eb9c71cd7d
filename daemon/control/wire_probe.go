package control

import "time"

// ContactFresh is how long a server's last answer counts as current; a later request for the status probes the server.
const ContactFresh = 10 * time.Second

// Probe is the result of a probe: a request that only asks a server to answer. The daemon probes only when a status is
// requested.
type Probe struct {
	At     time.Time `json:"at" doc:"when the probe ended"`
	Age    float64   `json:"age_seconds" doc:"how long ago, when the status was made"`
	OK     bool      `json:"ok" doc:"the server answers and accepts the API key"`
	Kind   string    `json:"kind,omitempty" doc:"the kind of trouble, as in a server's kind"`
	Detail string    `json:"detail,omitempty"`
	Hint   string    `json:"hint,omitempty"`
}

// StatusQuery says how fresh a status must be.
type StatusQuery struct {
	// Probe selects how to probe the servers silent for ContactFresh: ProbeWait, ProbeBehind, or "" for none.
	Probe string
}

// Values of StatusQuery.Probe.
const (
	ProbeWait   = "wait"   // the answer has what the probes found; it takes up to a second
	ProbeBehind = "behind" // the answer does not wait: a later status has the results
)
