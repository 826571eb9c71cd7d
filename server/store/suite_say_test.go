package store_test

import (
	"encoding/json"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/extract"
)

// says is a record with a text of a kind, as Claude Code writes it.
func says(kind, text string) string {
	content, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	switch kind {
	case "prompt":
		return `{"type":"user","message":{"role":"user","content":` + string(content) + `}}`
	case "answer":
		return `{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":` + string(content) + `}]}}`
	case "result":
		return `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":` + string(content) + `}]}}`
	}
	panic(kind)
}

// said are the texts of a line, as a deriver has them.
func said(l server.Line, at time.Time) []server.Text {
	list := extract.Of(l)
	for i := range list {
		list[i].Time = at
	}
	return list
}
