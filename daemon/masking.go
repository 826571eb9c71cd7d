package daemon

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/transcript/redact"
)

// maskingServers knows the servers' protocols.
type maskingServers interface {
	// Protocol returns "ccship", "plain", or anything else while it is unknown.
	Protocol(dest string) string
}

// masking provides the masker for each server. It is safe for concurrent use.
type masking struct {
	servers maskingServers
	proofs  proofs
	now     atomic.Pointer[setup]

	mu     sync.Mutex
	counts map[string]int64 // secrets by rule since the start; guarded by mu
}

// setup is the configuration in force.
type setup struct {
	mode   string
	masker *config.Maskers // nil when the mode is off
	proof  *redact.Masker  // nil without a key
}

// newMasking reads the key and the rules. prove is as protocol.AskSameHost. An error is a *config.Error.
func newMasking(c *config.Config, s maskingServers, prove prover) (*masking, error) {
	m := &masking{servers: s, proofs: proofs{prove: prove, known: map[string]proven{}}, counts: map[string]int64{}}
	return m, m.Configure(c)
}

// Configure applies a configuration. After an error the earlier one stays in force.
func (m *masking) Configure(c *config.Config) error {
	next := &setup{mode: c.Redact}
	var err error
	if next.mode == "off" {
		next.proof, err = proofOf(c)
	} else {
		next.masker, err = c.Maskers()
	}
	if err != nil {
		return err
	}
	if next.masker != nil {
		next.proof = next.masker.Of("")
	}
	m.now.Store(next)
	return nil
}

// proofOf returns the masker that proves tokens made before masking was turned off; nil if there is no key.
func proofOf(c *config.Config) (*redact.Masker, error) {
	if _, err := os.Stat(c.RedactKeyFile()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // none were made
	}
	key, err := c.RedactKey()
	if err != nil {
		return nil, err
	}
	return redact.New(key)
}

// Proof returns the masker that proves the tokens on servers, whether or not masking is on; nil without a key.
func (m *masking) Proof() *redact.Masker { return m.now.Load().proof }

// For returns the masker for texts of a project, given its folder, on their way to a server; nil: no masking. Both
// arguments may be empty.
func (m *masking) For(dest, cwd string) *redact.Masker {
	now := m.now.Load()
	if now.masker == nil || now.mode == "auto" && m.here(dest) {
		return nil
	}
	return now.masker.Of(cwd)
}

// here reports whether a server counts as part of this machine. A plain server does if its address is loopback. Any
// other server must prove it, because the address may belong to a tunnel.
func (m *masking) here(dest string) bool {
	return project.Loopback(dest) && (m.servers.Protocol(dest) == "plain" || m.proofs.has(project.ServerURL(dest)))
}

// Count adds secrets that were masked and queued.
func (m *masking) Count(ranges []redact.Range) {
	if len(ranges) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range ranges {
		m.counts[r.Rule]++
	}
}

// Counts returns the number of secrets masked since the start, by rule and in total.
func (m *masking) Counts() (byRule map[string]int64, all int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.counts {
		all += n
	}
	return maps.Clone(m.counts), all
}

// Mode returns the option in force: auto, on or off.
func (m *masking) Mode() string { return m.now.Load().mode }
