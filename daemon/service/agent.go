package service

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"

	"github.com/ccship/ccship/packaging"
)

// label is launchd's name of the agent.
const label = "com.github.ccship"

// arguments matches the program in a property list.
var arguments = regexp.MustCompile(`(?s)(<key>ProgramArguments</key>\s*<array>\n).*?(\t</array>)`)

// renderAgent returns the property list for a program: that of the packages, with other arguments.
func renderAgent(o Options) (string, error) {
	argv := []string{o.Binary, "run", "--log-file", o.LogFile}
	if o.Config != "" {
		argv = append(argv, "--config", o.Config)
	}
	var list strings.Builder
	for _, word := range argv {
		var escaped strings.Builder
		if err := xml.EscapeText(&escaped, []byte(word)); err != nil {
			return "", fmt.Errorf("render agent: %w", err)
		}
		// The library that writes the file interprets braces.
		list.WriteString("\t\t<string>" + strings.ReplaceAll(escaped.String(), "{", "&#123;") + "</string>\n")
	}
	at := arguments.FindStringSubmatchIndex(packaging.Agent)
	if at == nil {
		return "", fmt.Errorf("render agent: no arguments to replace")
	}
	return packaging.Agent[:at[3]] + list.String() + packaging.Agent[at[4]:], nil
}

// programOfAgent returns the first of the arguments in a property list; "" when there are none.
func programOfAgent(text string) string {
	program := regexp.MustCompile(`(?s)<key>ProgramArguments</key>\s*<array>\s*(<string>.*?</string>)`)
	found := program.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	var path string
	if err := xml.Unmarshal([]byte(found[1]), &path); err != nil {
		return ""
	}
	return path
}
