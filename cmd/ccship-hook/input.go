package main

import (
	"encoding/json"
	"io"
)

// maxHead is how many bytes of a hook's input are searched for what it says of the session. A tool's input and output
// come last and can be of any size.
const maxHead = 64 << 10

// input is what is read of a hook's input.
type input struct {
	session, cwd string
	agent        string // set in a subagent
	prompt       string // id; versions since 2.1.196 say it
	tool         string // id of the call
	title        string // the name that the user gave the session
	source       string // why a session starts: "startup", "resume", "fork", …
}

// readInput reads the members it knows of the object at the beginning of r, in any order. whole: it has read all of the
// object.
func readInput(r io.Reader) (in input, whole bool) {
	d := json.NewDecoder(io.LimitReader(r, maxHead))
	members := map[string]*string{
		"session_id": &in.session, "cwd": &in.cwd, "agent_id": &in.agent, "prompt_id": &in.prompt,
		"tool_use_id": &in.tool, "session_title": &in.title, "source": &in.source,
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return in, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return in, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return in, false
		}
		if into := members[name.(string)]; into != nil {
			_ = json.Unmarshal(value, into) // only a string says something
		}
	}
	_, err := d.Token() // the object's end
	return in, err == nil
}
