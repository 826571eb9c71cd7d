package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ccship/ccship/daemon/control"
)

// checkpointTools are checkpoint_list, checkpoint_get and checkpoint_create.
func (t *tools) checkpointTools(s *mcp.Server) {
	type list struct {
		Session string `json:"session"`
		Limit   int    `json:"limit"`
	}
	add(s, tool{
		name: "checkpoint_list", description: "List this session's checkpoints, newest first.",
		properties: sessionProperty + `,"limit":{"type":"integer","minimum":1,"maximum":100,"default":10}`,
	}, func(ctx context.Context, a list) ([]string, error) {
		limit, err := atMost(a.Limit, 10, 100)
		if err != nil {
			return nil, err
		}
		client, name, err := t.about(ctx, a.Session)
		if err != nil {
			return nil, err
		}
		return quote(client.Checkpoints(ctx, control.CheckpointsQuery{Session: name, Page: control.Page{Limit: limit}}))
	})
	type get struct {
		ID string `json:"id"`
	}
	add(s, tool{
		name: "checkpoint_get", description: "Get one checkpoint.",
		properties: `"id":{"type":"string","description":"cp-…"}`, required: []string{"id"},
	}, func(ctx context.Context, a get) ([]string, error) {
		if a.ID == "" {
			return nil, usage("id must name a checkpoint; checkpoint_list lists them")
		}
		client, err := t.daemon(ctx)
		if err != nil {
			return nil, err
		}
		return quote(client.Checkpoint(ctx, a.ID))
	})
	add(s, tool{
		name:        "checkpoint_create",
		description: "Create a checkpoint of this session as it is now.",
		properties: sessionProperty +
			`,"trigger":{"enum":["manual","pre_heavy"],"description":"pre_heavy: before heavy work"}` +
			`,"summary":{"type":"string","description":"Default: taken from the conversation"}` +
			`,"port_id":{"type":"string","description":"Your own name for the work"}`,
	}, t.create)
}

// create answers checkpoint_create.
func (t *tools) create(ctx context.Context, req control.CheckpointRequest) ([]string, error) {
	client, name, err := t.about(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	req.Session = name
	return text(client.CreateCheckpoint(ctx, req))
}

// atMost checks a limit; 0 is the default.
func atMost(limit, usual, most int) (int, error) {
	switch {
	case limit == 0:
		return usual, nil
	case limit < 0 || limit > most:
		return 0, usage(fmt.Sprintf("limit must be 1 to %d", most))
	}
	return limit, nil
}
