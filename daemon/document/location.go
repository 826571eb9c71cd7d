package document

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Location is where a session was started, and where its documents go.
type Location struct {
	Session  string
	File     tail.FileID // its main transcript; 0 until something of it is delivered
	Cwd      string      // where it was started
	Dest     string      // destination of its lines; "": none yet
	Withheld string      // why nothing of it is sent; "" if it is sent
	Written  time.Time   // when its transcript was last written
}

// Problems of a document that do not come from its file.
const (
	elsewhereProblem = "the working directory is another folder than when it was linked; link it again to have it " +
		"read there"
	notSentProblem = "its content is sent again: the file was away, or another, when it was to be sent"
)

// problem returns why a session's documents are not sent; "" if they are.
func (l *Location) problem() string {
	if l.Withheld == "" {
		return ""
	}
	return "it stays on this machine: " + l.Withheld
}

// path returns where a document of the session lies, as the transcript spells the folder.
func (l *Location) path(d *trackedDocument) string {
	return filepath.Join(l.Cwd, filepath.FromSlash(d.Path))
}

// open opens the working directory of a session. It does not read ccship's own files, and masks secrets in others for
// the session's server.
func (t *Tracker) open(loc *Location) (*folder, error) {
	folder, err := openFolder(loc.Cwd)
	if err == nil {
		folder.Guard, folder.Mask = t.Guard.Check, t.Masking.For(loc.Dest, loc.Cwd).ReaderAt
	}
	return folder, err
}

// canSend reports whether something can be queued for a session's server.
func (t *Tracker) canSend(loc Location) bool {
	return loc.Dest != "" && loc.Withheld == "" && t.Projections.State.HasCapacity(true)
}

const (
	policyKept  = 10 * time.Second // how long a folder's policy is cached
	maxPolicies = 4096             // how many folders are cached
)

// policyCache says, by folder, whether files may be sent.
type policyCache map[string]policy

type policy struct {
	excluded string // why files are not sent; "" if they may be
	at       time.Time
	conf     *config.Config // in force at that time
}

// locationOf narrows a session's location to the document at a path, which may lie in an excluded project in a
// subfolder. The caller holds work.
func (t *Tracker) locationOf(loc Location, path string) Location {
	if loc.Withheld != "" {
		return loc
	}
	dir, conf := filepath.Dir(path), t.Settings.Config()
	p, known := t.policies[dir]
	if age := time.Since(p.at); !known || p.conf != conf || age < 0 || age >= policyKept {
		p = policy{t.Locator.Excluded(dir), time.Now(), conf}
		if real, err := filepath.EvalSymlinks(dir); p.excluded == "" && err == nil && real != dir {
			p.excluded = t.Locator.Excluded(real)
		}
		if t.policies == nil || len(t.policies) >= maxPolicies {
			t.policies = policyCache{}
		}
		t.policies[dir] = p
	}
	if p.excluded != "" {
		loc.Withheld, loc.Dest = p.excluded, ""
	}
	return loc
}

// privateFolders hold keys and passwords, whatever the names of the files in them.
var privateFolders = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store",
	"gcloud", ".terraform.d", ".gem", ".1password", ".oci", ".aliyun", ".fly", ".snowsql", ".subversion",
	"keyrings", "keychains", // of GNOME and of macOS
}

// privateNames are files that hold keys and passwords.
var privateNames = []string{
	".netrc", "_netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", ".vault-token",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
	"credentials", "credentials.json", "credentials.toml", ".credentials.json", "application_default_credentials.json",
	".htpasswd", ".my.cnf", ".s3cfg", ".boto", ".dockercfg", "kubeconfig", ".kubeconfig", ".claude.json",
	".yarnrc.yml", ".yarnrc",
	"secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml",
	"auth.json", ".rclone.conf", "rclone.conf", ".terraformrc", "terraform.rc", ".databrickscfg", ".renviron", ".curlrc",
	".wgetrc", ".htdigest", ".mongorc.js", ".msmtprc", ".fetchmailrc", ".vault_pass", ".vault_pass.txt", "wp-config.php",
	"shadow", "gshadow", ".sh_history", ".fish_history", "fish_history", ".sqlite_history", ".irb_history",
	".rediscli_history", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
	".node_repl_history",
}

// privatePaths are the ends of paths of such files, whose names alone say nothing.
var privatePaths = []string{"/.git/config", "/gh/hosts.yml", "/glab-cli/config.yml", "/.config/hub",
	"/.cargo/config.toml", "/.m2/settings.xml", "/.gradle/gradle.properties", "/wireguard/wg0.conf"}

// copies are what editors and people put behind the name of a file of which they keep a copy.
var copies = []string{"~", "-", ".bak", ".old", ".orig", ".save", ".backup", ".swp"}

// privateEnds are ends of the names of such files.
var privateEnds = []string{
	".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".keyring", ".keychain", ".keychain-db", ".ppk", ".gpg",
	".env", ".p8", ".pvk", ".jceks", ".bks", ".kdb", ".psafe3", ".agekey", ".tfstate",
	".tfstate.backup", ".tfvars", ".ovpn",
}

// private reports whether a path suggests that a file holds keys or passwords. Letter case does not count, nor does
// what Windows ignores at the end of a name: dots, spaces, and the name of a stream.
func private(path string) bool {
	parts := strings.Split(filepath.ToSlash(strings.ToLower(path)), "/")
	folders, name := parts[:len(parts)-1], parts[len(parts)-1]
	file, _, _ := strings.Cut(name, ":")
	whole := "/" + strings.Join(folders, "/") + "/" + original(strings.TrimRight(file, ". "))
	if slices.ContainsFunc(privatePaths, func(end string) bool { return strings.HasSuffix(whole, end) }) {
		return true
	}
	return slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(privateFolders, f) }) ||
		privateName(original(name)) || privateName(original(strings.TrimRight(file, ". ")))
}

// original returns a name without what marks it as a copy.
func original(name string) string {
	for {
		short := name
		for _, end := range copies {
			short = strings.TrimSuffix(short, end)
		}
		if short = strings.TrimSuffix(short, "."); short == name || short == "" {
			return name
		}
		name = short
	}
}

func privateName(name string) bool {
	return strings.HasPrefix(name, ".env") || slices.Contains(privateNames, name) ||
		slices.ContainsFunc(privateEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// checkPrivate refuses a file whose resolved path is Private. Only a person's own command can link one, so a document
// whose own name is Private was permitted when it was linked. A link that took its place since was not.
func (f *folder) checkPrivate(name, path string, finding bool) error {
	if !private(path) || finding && f.AllowPrivate || !finding && path == f.Path(name) {
		return nil
	}
	return refuse("if you want it sent, run `ccship link add --allow-secret PATH` in a terminal of your own",
		"%s is a file for keys or passwords by its name", name)
}

// Guard keeps ccship's own files from being linked, read or sent. Its methods are safe for concurrent use.
type Guard struct {
	settings Settings
	db       *state.DB // knows the projects that have their own server, and so a key
}

// NewGuard returns a guard.
func NewGuard(settings Settings, db *state.DB) *Guard { return &Guard{settings, db} }

// Check refuses the files that hold ccship's secrets and state, under any name or link. path is where the open file
// info lies, links resolved. The error is a *refusedError.
func (g *Guard) Check(path string, info fs.FileInfo) error {
	if !g.isOwn(path, info) {
		return nil
	}
	return &refusedError{
		Message: fmt.Sprintf("%s is one of ccship's own files",
			path), Hint: "its state, its configuration and its keys are never sent",
	}
}

func (g *Guard) isOwn(path string, info fs.FileInfo) bool {
	if project.IsCredentials(path) {
		return true
	}
	c := g.settings.Config()
	for _, dir := range c.OwnFolders() {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	for _, name := range g.ownFiles(c, filepath.Dir(path)) {
		if known, err := os.Stat(name); err == nil && os.SameFile(known, info) {
			return true
		}
	}
	return false
}

// ownFiles returns ccship's own files whose other names must be refused too, for a file in a folder.
func (g *Guard) ownFiles(c *config.Config, folder string) []string {
	files := []string{c.Path, c.APIKeyFile, c.Socket}
	for _, dir := range c.OwnFolders() {
		entries, _ := os.ReadDir(dir) // a folder that cannot be listed may not exist
		for _, e := range entries {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	for dir, last := folder, ""; dir != last; last, dir = dir, filepath.Dir(dir) { // and all above it
		files = append(files, project.CredentialsPath(dir))
	}
	for _, dest := range g.db.Outbox.KnownDestinations() {
		if _, dir, own := project.SplitDestination(dest); own {
			files = append(files, project.CredentialsPath(dir))
		}
	}
	return files
}

// Open opens a file to send it, through a mask, unless the file belongs to ccship by now.
func (g *Guard) Open(root, name string, mask mask) (outbox.Content, error) {
	c, err := openToSend(root, name, g.Check, mask)
	if err != nil {
		return nil, err // not a nil *openFile in an interface
	}
	return c, nil
}
