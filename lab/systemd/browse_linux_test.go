package systemd

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// browseLink in the environment makes the test's binary a client that follows a link, in the network where it runs.
const browseLink = "CCSHIP_FIRST_MINUTES_LINK"

// browsed is what the pages showed.
type browsed struct {
	List   string // the page of conversations
	Hits   int    // lines that a search found
	Resume string // the command on the conversation's page
}

// browse is the program that the binary is with browseLink.
func browse(link string) int {
	seen, err := follow(link)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(seen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var (
	foundLink     = regexp.MustCompile(`href="(/sessions/[^"]+)"`)
	resumeCommand = regexp.MustCompile(`aria-label="Command that resumes the session">([^<]+)<`)
)

// follow logs in by the link, reads the list, searches, and opens the conversation that was found.
func follow(link string) (seen browsed, err error) {
	at, err := url.Parse(link)
	if err != nil {
		return seen, err
	}
	jar, _ := cookiejar.New(nil) // it has no error without options
	client := &http.Client{Jar: jar, Timeout: 5 * time.Minute}
	text := func(answer *http.Response, e error) string {
		if e != nil {
			err = errors.Join(err, e)
			return ""
		}
		defer answer.Body.Close()
		body, e := io.ReadAll(answer.Body)
		if err = errors.Join(err, e); answer.StatusCode != http.StatusOK {
			err = errors.Join(err, fmt.Errorf("%s: %s", answer.Request.URL, answer.Status))
		}
		return string(body)
	}
	text(client.Get(link))
	seen.List = text(client.PostForm(at.Scheme+"://"+at.Host+"/login", url.Values{"ticket": {at.Query().Get("ticket")}}))
	hits := text(client.Get(at.Scheme + "://" + at.Host + "/search?q=off+by+one+cent"))
	seen.Hits = strings.Count(hits, "<mark>")
	if found := foundLink.FindStringSubmatch(hits); found != nil {
		page := text(client.Get(at.Scheme + "://" + at.Host + html.UnescapeString(found[1])))
		if resume := resumeCommand.FindStringSubmatch(page); resume != nil {
			seen.Resume = html.UnescapeString(resume[1])
		}
	}
	return seen, err
}
