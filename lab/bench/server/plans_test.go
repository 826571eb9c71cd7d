//go:build linux

package server_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/load"
)

const (
	plansShown = 5
	planBytes  = 2500 // of one, at most
)

// plans prints the plans of the slowest queries that reading makes, as PostgreSQL ran them. SQLite tells nobody what it
// ran, so there are none of it.
func (b *bench) plans() {
	b.t.Helper()
	e, ok := b.db.(*elephant)
	if !ok {
		return
	}
	b.stop()
	kit.Must(b.t, e.cluster.Configure("session_preload_libraries = 'auto_explain'", "auto_explain.log_min_duration = 1",
		"auto_explain.log_analyze = on", "auto_explain.log_buffers = on"))
	b.start()
	b.derived()
	from := e.logged()
	owner := load.NewClient("http://"+b.listen, b.ownerKey, 8)
	defer owner.Close()
	kit.Must(b.t, owner.Login(context.Background()))
	member := load.NewClient("http://"+b.listen, b.keys[1], 8)
	defer member.Close()
	kit.Must(b.t, member.Login(context.Background()))
	for _, q := range append(b.queries("as owner", owner), b.queries("as member", member)...) {
		if _, err := q.as.Get(context.Background(), q.path); err != nil {
			say("    %s: %v", q.name, err)
		}
	}
	b.stop()
	text, err := os.ReadFile(e.cluster.Log())
	kit.Must(b.t, err)
	kit.Must(b.t, e.cluster.Configure("session_preload_libraries = ''"))
	for _, p := range slowest(string(text[from:])) {
		fmt.Printf("\na query of %.0f ms\n%s\n", p.ms, p.text)
	}
	b.start()
}

func (e *elephant) logged() int64 {
	info, err := os.Stat(e.cluster.Log())
	kit.Must(e.t, err)
	return info.Size()
}

var (
	planned = regexp.MustCompile(`duration: ([0-9.]+) ms  plan:\n`)
	spaces  = regexp.MustCompile(`\s+`)
)

type plan struct {
	query, text string
	ms          float64
}

// slowest are the plans of a log that took longest, one of each query.
func slowest(log string) []plan {
	best := map[string]plan{}
	found := planned.FindAllStringSubmatchIndex(log, -1)
	for _, at := range found {
		ms, err := strconv.ParseFloat(log[at[2]:at[3]], 64)
		if err != nil {
			continue
		}
		var lines []string // what belongs to an entry begins with a tab
		for line := range strings.Lines(log[at[1]:]) {
			if !strings.HasPrefix(line, "\t") {
				break
			}
			lines = append(lines, strings.TrimPrefix(line, "\t"))
		}
		body := strings.Join(lines, "")
		query, rest, _ := strings.Cut(body, "(cost=")
		query = spaces.ReplaceAllString(query[:max(strings.LastIndexByte(query, '\n'), 0)], " ")
		if old, ok := best[query]; (!ok || old.ms < ms) && rest != "" && !strings.Contains(query, "UPDATE") {
			best[query] = plan{query, body[:min(len(body), planBytes)], ms}
		}
	}
	var all []plan
	for _, p := range best {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b plan) int { return -cmp.Compare(a.ms, b.ms) })
	return all[:min(len(all), plansShown)]
}
