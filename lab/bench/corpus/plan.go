package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Plan says how much is invented, and of how many people. Sessions follow from it.
type Plan struct {
	Seed   uint64
	Bytes  int64 // of all lines, newlines counted
	Owners int   // 0: one for each 10 MB
}

// Words that are planted in few sessions, or in all: what searches look for.
const (
	RareWord   = "kestrelhook" // in three sessions of all
	KoreanWord = "장바구니"        // in many a Korean session
	CodeText   = "if err != nil"
	Frequent   = "return"
	TwoChars   = "ok"
)

// Session is one transcript to be made: of a person, or of an agent that a person's session started.
type Session struct {
	Owner        int // from 0
	ID, Parent   string
	Machine      string
	Host         string
	Project      string // its hash
	Cwd, Path    string
	Bytes        int64 // about as many are made
	Start        time.Time
	Rewound      bool // has a second generation
	seed         uint64
	korean, rare bool
	agent        string
	given        []byte // a file of a folder; nil: invented
}

// OwnerCount is how many people the plan has.
func (p Plan) OwnerCount() int {
	if p.Owners > 0 {
		return p.Owners
	}
	return int(max(5, p.Bytes/10_000_000))
}

// Sessions are all transcripts of the plan, in the order in which they began.
func (p Plan) Sessions() []Session {
	rng := rand.New(rand.NewPCG(p.Seed, 0x706c616e))
	owners := p.OwnerCount()
	var all []Session
	for left := p.Bytes; left > 0; {
		s := p.session(rng, rng.IntN(owners), len(all))
		s.Bytes = min(sizeOf(rng), max(left, 1000))
		left -= s.Bytes
		all = append(all, s)
		for n := agents(rng, s.Bytes); n > 0 && left > 0; n-- {
			a := s.child(rng)
			left -= a.Bytes
			all = append(all, a)
		}
	}
	for i := range 3 { // one early, one in the middle, one late
		all[(2*i+1)*len(all)/6].rare = true
	}
	p.date(all)
	return all
}

// date spreads the sessions over a year, so that those made last are the newest.
func (p Plan) date(all []Session) {
	const year = 365 * 24 * time.Hour
	until := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range all {
		back := time.Duration(float64(year) * float64(len(all)-i) / float64(len(all)))
		all[i].Start = until.Add(-back)
	}
}

func (p Plan) session(rng *rand.Rand, owner, n int) Session {
	seed := rng.Uint64()
	project := owner*7 + rng.IntN(4) // of one's own, and one that two people share
	cwd := fmt.Sprintf("/home/user%d/work/project-%d", owner, project)
	folder := fmt.Sprintf("-home-user%d-work-project-%d", owner, project)
	machine := fmt.Sprintf("m%06x", owner*2+rng.IntN(5)/4)
	id := uuid(rand.New(rand.NewPCG(p.Seed, uint64(n))))
	return Session{Owner: owner, ID: id, Machine: machine, Host: "host-" + machine, Cwd: cwd,
		Project: fmt.Sprintf("%08x", project), Path: folder + "/" + id + ".jsonl",
		seed: seed, korean: owner%6 == 1, Rewound: rng.IntN(20) == 0}
}

// child is an agent's transcript.
func (s Session) child(rng *rand.Rand) Session {
	a := s
	a.seed, a.Rewound = rng.Uint64(), false
	a.agent = fmt.Sprintf("a%015x", a.seed>>4)
	a.Parent, a.ID = s.ID, s.ID+"/agent-"+a.agent
	a.Path = s.Path[:len(s.Path)-len(".jsonl")] + "/subagents/agent-" + a.agent + ".jsonl"
	a.Bytes = min(sizeOf(rng)/6, 2_000_000) + 8_000
	return a
}

// One is a session of about so many bytes, apart from the plan: to look at its page.
func (p Plan) One(n int, size int64) Session {
	rng := rand.New(rand.NewPCG(p.Seed+uint64(n), 0x6f6e65))
	s := p.session(rng, 0, 1<<30+n)
	s.Bytes, s.Rewound = size, false
	s.Start = time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)
	return s
}

// Many are n sessions of two short turns, one owner in twenty of them new: to list them.
func (p Plan) Many(n int) []Session {
	p.Owners = max(5, n/650)
	rng := rand.New(rand.NewPCG(p.Seed, 0x6d616e79))
	all := make([]Session, n)
	for i := range all {
		all[i] = p.session(rng, i%p.Owners, i)
		all[i].Bytes, all[i].Rewound = 1, false
	}
	p.date(all)
	return all
}

// sizeOf draws a session's size: half of them below 150 kB, a mean of about 600 kB, the longest 25 MB.
func sizeOf(rng *rand.Rand) int64 {
	return int64(min(math.Exp(rng.NormFloat64()*1.65+math.Log(150_000)), 25_000_000)) + 2_000
}

func agents(rng *rand.Rand, size int64) int {
	if size < 200_000 || rng.IntN(3) > 0 {
		return 0
	}
	return 1 + rng.IntN(4)
}
