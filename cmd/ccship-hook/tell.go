package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
)

// errUnknownHook is the error for a hook that the plugin does not have.
var errUnknownHook = errors.New("there is no such hook")

// request and answer are what package control calls PendingRequest, and Pending or Init.
type request struct {
	Session string `json:"session"`
	Cwd     string `json:"cwd,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Event   string `json:"event,omitempty"`
	Confirm bool   `json:"confirm,omitempty"`
	Receipt string `json:"receipt,omitempty"`
}

type answer struct {
	Text    string `json:"text"`
	Receipt string `json:"receipt"`
}

// tell asks the daemon what there is to tell, prints it as the hook's output, and then confirms it: what a hook did not
// print the next one gets.
func (h *hook) tell(ctx context.Context, in input) error {
	// Old versions drop the output of a PreToolUse hook.
	if in.session == "" || in.agent != "" || h.event == "PreToolUse" && !in.recent() {
		return nil
	}
	paths, err := h.Sockets()
	if err != nil {
		return err
	}
	d, said, err := h.ask(ctx, paths, in)
	if err != nil {
		return err
	}
	defer d.close()
	if said.Text == "" {
		return nil
	}
	h.printing.Store(true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := h.print(said.Text); err != nil || said.Receipt == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	_, err = d.pending(ctx, request{Session: in.session, Receipt: said.Receipt})
	return err
}

// print writes the text as Claude Code reads it from a hook.
func (h *hook) print(text string) error {
	type output struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	}
	e := json.NewEncoder(h.Stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]output{"hookSpecificOutput": {h.event, text}}); err != nil {
		return fmt.Errorf("print what there is to tell: %w", err)
	}
	return nil
}

// ask asks the first daemon that runs. All that a hook asks uses one connection.
func (h *hook) ask(ctx context.Context, paths []string, in input) (d *daemon, said answer, err error) {
	for _, path := range slices.Compact(paths) {
		if d, err = dial(ctx, path); err == nil {
			said, err = h.askOne(ctx, d, in)
			if err == nil {
				return d, said, nil
			}
			d.close()
		}
		if !errors.Is(err, errNobody) {
			break
		}
	}
	return nil, answer{}, err
}

func (h *hook) askOne(ctx context.Context, d *daemon, in input) (answer, error) {
	if h.event == "SessionStart" {
		q := url.Values{"session": {in.session}, "cwd": {in.cwd}, "confirm": {"true"},
			"title": {in.title}, "source": {in.source}}
		return d.get(ctx, "/v1/init?"+q.Encode())
	}
	req := request{Session: in.session, Cwd: in.cwd, Event: h.event, Confirm: true}
	if in.recent() { // nobody waits for this hook
		req.Tool = in.tool
	}
	said, err := d.pending(ctx, req)
	if errors.Is(err, errUsage) { // a daemon of an older version does not take the working directory or the tool
		req.Cwd, req.Tool = "", ""
		return d.pending(ctx, req)
	}
	return said, err
}
