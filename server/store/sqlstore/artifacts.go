package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
)

// Artifacts stores checkpoints, documents, blobs and link requests, in the same way in both databases. It is set once,
// when a store opens.
type Artifacts struct {
	*Ledgers
	db   Writer
	cold ColdFiles
}

// ColdFiles reads files, wherever their pieces are.
type ColdFiles interface {
	// Chunk returns the piece of a file that begins at a position; nil if there is none, or it is lost.
	Chunk(ctx context.Context, owner, blob, place int64) ([]byte, error)
}

// NewArtifacts returns the artifacts of a store.
func NewArtifacts(ctx context.Context, db DB, cold ColdFiles) (Artifacts, error) {
	ledgers, err := openLedgers(ctx, db)
	if err != nil {
		return Artifacts{}, err
	}
	return Artifacts{Ledgers: &ledgers, db: Writer{DB: db}, cold: cold}, nil
}

// streamTx is a stream whose artifacts are being written.
type streamTx struct {
	Dialect
	stream, owner, rank, now int64
	project                  string
}

// inStream runs fn with a stream's artifacts, which w describes, and announces the change once it is durable.
func (p *Artifacts) inStream(ctx context.Context, w Write, now int64, about string, fn func(streamTx) error) error {
	owner, h := w.Owner, w.Head
	var d streamTx
	err := p.db.Write(ctx, func(l Dialect) (err error) {
		d = streamTx{Dialect: l, owner: owner, now: now}
		if err := NewAdmission(l).Admit(ctx, w); err != nil {
			return err
		}
		if d.stream, d.project, err = enter(ctx, l, owner, h, now); err != nil {
			return err
		}
		if d.rank, err = d.epoch(ctx, h.Epoch); err != nil {
			return fmt.Errorf("write epoch: %w", err)
		}
		if err := fn(d); err != nil {
			return err
		}
		return p.RecordWrite(ctx, l, owner, h, d.stream)
	})
	if err == nil && about != "" {
		p.db.Tell(server.Change{About: about, Stream: d.stream, SessionID: h.SessionID, Machine: h.Machine, Owner: owner,
			Project: d.project, At: Moment(now)})
	}
	return err
}

// epoch finds or makes the rank of an epoch.
func (d streamTx) epoch(ctx context.Context, name string) (int64, error) {
	rank, err := Number(ctx, d, `SELECT rank FROM artifact_epochs WHERE owner = ? AND stream = ? AND name_key = ?`,
		d.owner, d.stream, Key(name))
	if err != nil || rank > 0 {
		return rank, err
	}
	last, err := Number(ctx, d, `SELECT max(rank) FROM artifact_epochs WHERE owner = ? AND stream = ? HAVING count(*) > 0`,
		d.owner, d.stream)
	if err != nil {
		return 0, err
	}
	_, err = d.Exec(ctx, `
INSERT INTO artifact_epochs (owner, stream, rank, name, name_key) VALUES (?, ?, ?, ?, ?)`,
		d.owner, d.stream, last+1, CleanText(name), Key(name))
	return last + 1, err
}

// PutCheckpoints implements server.ArtifactIngester.
func (p *Artifacts) PutCheckpoints(ctx context.Context, b *server.CheckpointBatch) error {
	w := Write{Owner: b.Owner, Quota: b.Quota, Head: &b.Head}
	for _, c := range b.List {
		w.Bytes += server.RowBytes + int64(len(c.Summary))
		for _, file := range c.ActiveFiles {
			w.Bytes += int64(len(file))
		}
	}
	err := p.inStream(ctx, w, Micros(b.Received), server.AboutCheckpoints, func(d streamTx) error {
		for i := range b.List {
			if err := d.checkpoint(ctx, &b.List[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return Wrap(err, "store checkpoints")
}

func (d streamTx) checkpoint(ctx context.Context, c *server.Checkpoint) error {
	files := c.ActiveFiles
	if files == nil {
		files = []string{}
	}
	list, err := json.Marshal(files)
	if err != nil {
		return err
	}
	_, err = d.Exec(ctx, `
INSERT INTO checkpoints AS c (owner, stream, id, rank, port_id, tokens_used, token_budget, cause, context_hash,
  summary, active_files, created, generation, line)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, id) DO UPDATE SET rank = excluded.rank, port_id = excluded.port_id,
  tokens_used = excluded.tokens_used, token_budget = excluded.token_budget, cause = excluded.cause,
  context_hash = excluded.context_hash, summary = excluded.summary, active_files = excluded.active_files,
  created = excluded.created, generation = excluded.generation, line = excluded.line
WHERE excluded.rank >= c.rank`,
		d.owner, d.stream, CleanText(c.ID), d.rank, CleanText(c.PortID), c.TokensUsed, c.TokenBudget, CleanText(c.Trigger),
		CleanText(c.ContextHash), CleanText(c.Summary), CleanText(string(list)), Micros(c.Created), c.Generation, c.Line)
	return err
}

const selectCheckpoint = `
SELECT c.num, c.id, c.stream, s.session_id, s.machine, s.owner, c.port_id, c.tokens_used, c.token_budget, c.cause,
  c.context_hash, c.summary, c.active_files, c.created, c.generation, c.line
FROM checkpoints c JOIN streams s ON s.owner = c.owner AND s.id = c.stream `

func scanCheckpoint(row Scanner) (c server.Checkpoint, num int64, err error) {
	var created int64
	var files string
	err = row.Scan(&num, &c.ID, &c.Stream, &c.SessionID, &c.Machine, &c.Owner, &c.PortID, &c.TokensUsed, &c.TokenBudget,
		&c.Trigger, &c.ContextHash, &c.Summary, &files, &created, &c.Generation, &c.Line)
	if err == nil {
		err = json.Unmarshal([]byte(files), &c.ActiveFiles)
	}
	c.Created = Moment(created)
	return c, num, err
}

// Checkpoints implements server.Artifacts.
func (p *Artifacts) Checkpoints(ctx context.Context, scope server.Scope,
	q server.CheckpointQuery) (server.CheckpointPage, error) {
	if q.Ref != nil {
		x, err := Resolve(ctx, p.db, scope, *q.Ref, (*Filter).Scope)
		if err != nil {
			return server.CheckpointPage{}, err
		}
		q.Stream = x.Stream
	}
	var f Filter
	f.Scope(scope)
	f.Streams(nil, q.User)
	if q.Session != "" {
		f.Add(named, Key(q.Session))
	}
	if q.Stream != 0 {
		f.Add(`c.stream = ?`, q.Stream)
	}
	last, num, err := parseAfter(server.Page{After: q.After, Recent: true})
	if err != nil {
		return server.CheckpointPage{}, err
	}
	f.Add(`(c.created, c.num) < (?, ?)`, last, num)
	var out server.CheckpointPage
	bytes, after := 0, ""
	err = p.db.Query(ctx, selectCheckpoint+f.Where()+` ORDER BY c.created DESC, c.num DESC LIMIT ?`,
		append(f.Args, q.Limit+1), func(row Scanner) error {
			if len(out.List) >= q.Limit || bytes > server.CheckpointBytes {
				out.Next = after
				return errFullPage
			}
			c, num, err := scanCheckpoint(row)
			out.List, after = append(out.List, c), fmt.Sprintf("%d-%d", Micros(c.Created), num)
			bytes += c.Bytes()
			return err
		})
	if err != nil && !errors.Is(err, errFullPage) {
		return server.CheckpointPage{}, fmt.Errorf("list checkpoints: %w", err)
	}
	return out, nil
}

var errFullPage = errors.New("the page is full")

// Checkpoint implements server.Artifacts.
func (p *Artifacts) Checkpoint(ctx context.Context, scope server.Scope, id string,
	owner int64) (server.Checkpoint, error) {
	var f Filter
	f.Add(`c.id = ?`, id)
	f.Scope(scope)
	f.Streams(nil, owner)
	no := &server.AmbiguousError{}
	var found []server.Checkpoint // the newest of each user
	err := p.db.Query(ctx, selectCheckpoint+`
WHERE (c.owner, c.num) IN (SELECT s.owner, max(c.num) FROM checkpoints c
  JOIN streams s ON s.owner = c.owner AND s.id = c.stream `+f.Where()+` GROUP BY s.owner)
ORDER BY CASE s.owner WHEN ? THEN 0 ELSE 1 END, c.num DESC LIMIT ?`,
		append(f.Args, scope.User, server.MaxChoices), func(row Scanner) error {
			c, _, err := scanCheckpoint(row)
			found, no.Session = append(found, c), c.SessionID
			no.Choices = append(no.Choices, server.Address{Stream: c.Stream, Owner: c.Owner, SessionID: c.SessionID,
				Machine: c.Machine, Last: c.Created})
			return err
		})
	switch {
	case err != nil:
		return server.Checkpoint{}, fmt.Errorf("look up checkpoint: %w", err)
	case len(found) == 0:
		return server.Checkpoint{}, fmt.Errorf("checkpoint %q: %w", id, server.ErrNotFound)
	case len(found) > 1 && (scope.User == 0 || found[0].Owner != scope.User):
		return server.Checkpoint{}, no
	}
	return found[0], nil
}

// Lags implements server.Library.
func (p *Artifacts) Lags(ctx context.Context, scope server.Scope, q server.DropQuery) (bool, error) {
	var f Filter
	f.Add(`s.version > s.derived`)
	f.Scope(scope)
	f.Drops(q)
	n, err := Number(ctx, p.db, `SELECT 1 FROM streams s `+f.Where()+` LIMIT 1`, f.Args...)
	return n > 0, Wrap(err, "look for what is to derive")
}

// Resolve implements server.Library.
func (p *Artifacts) Resolve(ctx context.Context, scope server.Scope, ref server.Ref) (server.Address, error) {
	return Resolve(ctx, p.db, scope, ref, (*Filter).Scope)
}

// WithLines lets through the streams s of a scope that may have the lines a ref asks for.
func WithLines(ref server.Ref) func(*Filter, server.Scope) {
	return func(f *Filter, scope server.Scope) {
		f.Scope(scope)
		if ref.Epoch != "" {
			f.Add(`EXISTS (SELECT 1 FROM epochs e WHERE e.owner = s.owner AND e.stream = s.id AND e.name = ?)`, ref.Epoch)
		}
	}
}

// Resolve finds the one stream that a ref names; of one user's the one with lines, and of those the one heard from
// last. limit adds what of the scope's streams is let through. Nothing else turns a session's id into a stream.
func Resolve(
	ctx context.Context, l Dialect, scope server.Scope, ref server.Ref, limit func(*Filter, server.Scope),
) (server.Address, error) {
	return lookup{l, scope, limit}.find(ctx, ref)
}

type lookup struct {
	Dialect
	scope server.Scope
	limit func(*Filter, server.Scope)
}

func (l lookup) find(ctx context.Context, ref server.Ref) (x server.Address, err error) {
	var f Filter
	l.limit(&f, l.scope)
	if ref.Stream != 0 {
		f.Add(`s.id = ?`, ref.Stream)
	} else {
		f.Add(named, Key(ref.SessionID))
		f.Streams(ref.Machine, ref.Owner)
		f.user(ref.User)
	}
	err = l.Query(ctx, `
SELECT s.id, s.owner, s.session_id, s.machine, s.host, s.project_hash, s.project, s.last_received FROM streams s `+
		f.Where()+`
ORDER BY CASE s.owner WHEN ? THEN 0 ELSE 1 END, CASE WHEN `+HasLines+` THEN 0 ELSE 1 END,
  s.last_received DESC, s.id DESC
LIMIT 1`, append(f.Args, l.scope.User), func(row Scanner) error {
		var last int64
		err := row.Scan(&x.Stream, &x.Owner, &x.SessionID, &x.Machine, &x.Host, &x.ProjectHash, &x.Project, &last)
		x.Last = Moment(last)
		return err
	})
	switch {
	case err != nil:
		return x, fmt.Errorf("find session: %w", err)
	case x.Stream == 0 && ref.Prefix:
		if ref, err = l.whole(ctx, ref); err != nil {
			return x, fmt.Errorf("session %q: %w", ref.SessionID, err)
		}
		ref.Prefix = false
		return l.find(ctx, ref)
	case x.Stream == 0:
		return x, fmt.Errorf("session %q: %w", ref.SessionID, server.ErrNotFound)
	case ref.Stream != 0, ref.Owner != 0, ref.User != "", l.scope.User != 0 && x.Owner == l.scope.User:
		return x, nil
	}
	return x, l.onlyOne(ctx, ref, f)
}

// onlyOne is an *server.AmbiguousError when the streams that a filter lets through belong to several users.
func (l lookup) onlyOne(ctx context.Context, ref server.Ref, f Filter) error {
	var owners []int64
	err := l.Query(ctx, `SELECT s.owner, max(s.last_received) FROM streams s `+f.Where()+`
GROUP BY s.owner ORDER BY 2 DESC, 1 LIMIT ?`, append(f.Args, server.MaxChoices), func(row Scanner) error {
		var owner, last int64
		err := row.Scan(&owner, &last)
		owners = append(owners, owner)
		return err
	})
	if err != nil || len(owners) < 2 {
		return err
	}
	no := &server.AmbiguousError{Session: ref.SessionID}
	for _, owner := range owners {
		if ref.Owner = owner; owner == 0 {
			continue // such streams have no user to name
		}
		x, err := l.find(ctx, ref)
		if err != nil {
			return err
		}
		no.Choices = append(no.Choices, x)
	}
	return no
}
