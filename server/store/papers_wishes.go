package store

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/ccship/ccship/server"
)

const selectWish = `
SELECT w.id, s.session_id, s.machine, s.host, w.path, w.link, w.wisher, w.asked, w.state, w.reason, w.answered
FROM wishes w JOIN streams s ON s.id = w.stream `

func scanWish(row scanner) (w server.Wish, err error) {
	var link, asked, answered int64
	var state string
	err = row.Scan(&w.ID, &w.SessionID, &w.Machine, &w.Host, &w.Path, &link, &w.By, &asked, &state, &w.Reason, &answered)
	w.Link, w.State, w.Asked, w.Answered = link == 1, server.WishState(state), moment(asked), moment(answered)
	return w, err
}

func listWishes(ctx context.Context, l ledger, rest string, args ...any) (out []server.Wish, err error) {
	out = []server.Wish{}
	err = l.query(ctx, selectWish+rest, args, func(row scanner) error {
		w, err := scanWish(row)
		out = append(out, w)
		return err
	})
	return out, err
}

// Wish implements server.Papers.
func (p *papers) Wish(ctx context.Context, scope server.Scope, ref server.Ref, n server.NewWish) (server.Wish, error) {
	if err := server.CheckPath(n.Path); err != nil {
		return server.Wish{}, err
	}
	var out server.Wish
	var x folder
	err := p.writer(ctx, func(l ledger) (err error) {
		if x, err = p.folder(ctx, l, scope, ref, (*filter).own); err != nil {
			return err
		}
		if x.machine == "" {
			return server.ErrNoDaemon
		}
		// Its row stands for the stream, so that two who wish the same do not wish it twice.
		if _, err := l.exec(ctx, `UPDATE streams SET host = host WHERE id = ?`, x.stream); err != nil {
			return err
		}
		out, err = addWish(ctx, l, x, n)
		return err
	})
	if err != nil {
		return server.Wish{}, fmt.Errorf("keep wish: %w", err)
	}
	p.tell(server.Change{About: server.AboutDocuments, Stream: x.stream, SessionID: x.session, Machine: x.machine,
		Owner: x.owner, Project: x.project, At: n.At})
	return out, nil
}

// addWish keeps a wish about a stream, or answers the same one that waits.
func addWish(ctx context.Context, l ledger, x folder, n server.NewWish) (server.Wish, error) {
	waiting, err := listWishes(ctx, l, `WHERE w.stream = ? AND w.state = 'waiting' ORDER BY w.num`, x.stream)
	if err != nil {
		return server.Wish{}, err
	}
	taken := false
	for _, w := range waiting {
		if w.Path != cleanText(n.Path) {
			continue
		}
		if w.Link == n.Link {
			return w, nil
		}
		if _, err := l.exec(ctx, `DELETE FROM wishes WHERE id = ?`, w.ID); err != nil {
			return server.Wish{}, err
		}
		taken = true
	}
	if len(waiting) >= server.MaxWishes && !taken {
		return server.Wish{}, server.ErrTooManyWishes
	}
	w := server.Wish{ID: rand.Text(), SessionID: x.session, Machine: x.machine, Host: x.host, Path: cleanText(n.Path),
		Link: n.Link, By: n.By, Asked: moment(micros(n.At)), State: server.WishWaits}
	_, err = l.exec(ctx, `
INSERT INTO wishes (id, stream, path, link, wisher, asked, state, reason, answered) VALUES (?, ?, ?, ?, ?, ?, 'waiting', '', 0)`,
		w.ID, x.stream, w.Path, flag(w.Link), w.By, micros(n.At))
	return w, err
}

// answer notes what became of a wish; of another stream's it says nothing.
func (d desk) answer(ctx context.Context, e *server.DocumentEvent) error {
	state := server.WishDone
	if e.Change == server.Refused {
		state = server.WishRefused
	}
	_, err := d.exec(ctx, `
UPDATE wishes SET state = ?, reason = ?, answered = ? WHERE id = ? AND stream = ? AND state = 'waiting'`,
		string(state), cleanText(e.Reason), d.now, cleanText(e.Wish), d.stream)
	return err
}

// Wishes implements server.Papers.
func (p *papers) Wishes(ctx context.Context, scope server.Scope, ref server.Ref) ([]server.Wish, error) {
	x, err := p.folder(ctx, p.reader, scope, ref, (*filter).papers)
	if err != nil {
		return nil, err
	}
	out, err := listWishes(ctx, p.reader, `WHERE w.stream = ? ORDER BY w.num DESC LIMIT ?`, x.stream, server.MaxWishes)
	if err != nil {
		return nil, fmt.Errorf("list wishes: %w", err)
	}
	return out, nil
}

// Asked implements server.PaperIngester.
func (p *papers) Asked(ctx context.Context, owner int64, machine string) ([]server.Wish, error) {
	out, err := listWishes(ctx, p.reader, `WHERE w.state = 'waiting' AND s.owner = ? AND s.machine = ? ORDER BY w.num LIMIT ?`,
		owner, machine, server.MaxWishes)
	if err != nil {
		return nil, fmt.Errorf("list wishes: %w", err)
	}
	return out, nil
}
