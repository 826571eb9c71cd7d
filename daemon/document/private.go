package document

import (
	"path/filepath"
	"slices"
	"strings"
)

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
