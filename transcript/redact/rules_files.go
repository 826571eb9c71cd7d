package redact

import "strings"

const (
	// assignedLine is what is assigned to a name of its own in a section, otherLine is a line without a secret.
	assignedLine = `["']?[\w.@/+-]{1,60}["']?[ \t]*(?:=>|[=:])[ \t]*["']?([^\s"'<&,;{}]{6,})["']?`
	otherLine    = `[^\r\n\[{}]{0,80}`
	nextLine     = `[ \t]*(?:[\r\n]+|[{,])[ \t]*`
	members      = `[ \t]*(?:[\r\n]+|\{)[ \t]*(?:` + otherLine + nextLine + `){0,4}?` + assignedLine
	furtherLine  = `(?:` + nextLine + `(?:` + assignedLine + `|` + otherLine + `))?`
)

// fileRules are for secrets in the formats of files that hold them.
var fileRules = []Rule{
	{
		Name:   "password-hash",
		Source: "https://man7.org/linux/man-pages/man5/crypt.5.html",
		Pattern: `(?:^|[^\w$])(\$(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|` +
			`\$[56]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}|\$g?y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}|` +
			`\$argon2(?:id?|d)\$v=\d+\$[mtp=,\d]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}|\$7\$[./A-Za-z0-9]{20,}\$[./A-Za-z0-9]{43}|\$7\$\d+\$[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{40,}|` +
			`\$scrypt\$[^\s$]+\$[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{16,})`,
		Literals: []string{"$apr1$", "$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$argon2", "$scrypt$"},
		Before:   4, After: 320,
	},
	{
		Name:   "password-hash",
		Source: "https://docs.djangoproject.com/en/stable/topics/auth/passwords/",
		Pattern: `(?:pbkdf2_sha(?:1|256)\$\d+\$[A-Za-z0-9]{1,64}\$[A-Za-z0-9+/]{20,}={0,2}|` +
			`pbkdf2:sha(?:1|256|512)(?::\d+)?\$[A-Za-z0-9]{1,64}\$[a-f0-9]{40,128}|scrypt:\d+:\d+:\d+\$[A-Za-z0-9]{1,64}\$[a-f0-9]{64,128}|` +
			`\{(?:SHA|SSHA|SSHA256|SSHA512|SMD5|CRYPT)\}[A-Za-z0-9+/.$]{24,}={0,2}|SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=:]+|` +
			`\bmd5[a-f0-9]{32}\b)`,
		Literals: []string{"pbkdf2_sha", "pbkdf2:sha", "scrypt:", "{SHA}", "{SSHA", "{SMD5}", "{CRYPT}", "SCRAM-SHA-256$", "md5"},
		Before:   4, After: 256, near: hashed,
	},
	{
		Name:     "pgpass",
		Source:   "https://www.postgresql.org/docs/current/libpq-pgpass.html",
		Pattern:  `(?m)` + lineStart + `[\w.*/-]+:(?:\d{2,5}|\*):[\w.*$-]+:[\w.*@-]+:([^\s"'<&` + "`" + `]{4,})(?:$|[\s"'<&\\])`,
		Literals: []string{":5432:", ":5433:", ":6432:", ":6543:", ":*:", ":3306:", ":1521:"}, Before: 280, After: 280, loose: true,
	},
	{
		Name:     "laravel-key",
		Source:   "https://laravel.com/docs/encryption",
		Pattern:  `\bbase64:([A-Za-z0-9+/]{43}=)`,
		Literals: []string{"base64:"}, Before: 2, After: 64,
	},
	{
		Name:     "machine-key",
		Source:   "https://learn.microsoft.com/previous-versions/dotnet/netframework-4.0/w8h3skw9(v=vs.100)",
		Pattern:  `(?i)(?:validationKey|decryptionKey)\s*=\s*["']([0-9A-F]{32,256})["']`,
		Literals: []string{"validationkey", "decryptionkey"}, Fold: true, Before: 4,
	},
	{
		Name:     "wp-config",
		Source:   "https://developer.wordpress.org/advanced-administration/security/secret-keys/",
		Pattern:  `(?i)define\(\s*["']\w*(?:_KEY|_SALT|PASSWORD|SECRET|TOKEN)["']\s*,\s*(?:'([^'\r\n]{8,})'|"([^"\r\n]{8,})")`,
		Literals: []string{"define("}, Fold: true, Before: 2, near: quoted, loose: true,
	},
	{
		Name:     "rails-master-key",
		Source:   "https://guides.rubyonrails.org/security.html#custom-credentials",
		Pattern:  `(?:master|credentials/\w+|production|staging)\.key\b[^\w]{0,12}(?:\d{1,4}[:\t→-])?\s*([0-9a-f]{32})\b`,
		Literals: []string{".key"}, Before: 24, After: 80, near: keyFile,
	},
	{
		Name:     "openssh-key",
		Source:   "https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key",
		Pattern:  `b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]{20,}={0,2}(?:` + keyBreak + `[A-Za-z0-9+/]{4,}={0,2})*`,
		Literals: []string{"b3BlbnNzaC1rZXktdjE"}, Before: 4, After: 8192,
	},
	{
		Name:     "encoded-key",
		Source:   "https://kubernetes.io/docs/concepts/configuration/secret/#tls-secrets",
		Pattern:  `LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0Eg|BPUEVO|BFQyBQ|BFTkNS|BEU0Eg|BQR1AgUFJJ)[A-Za-z0-9+/]{20,}={0,2}(?:` + keyBreak + `[A-Za-z0-9+/]{4,}={0,2})*`,
		Literals: []string{"LS0tLS1CRUdJTi"}, Before: 4, After: 16384,
	},
	{
		Name:     "docker-auth",
		Source:   "https://docs.docker.com/reference/cli/docker/login/",
		Pattern:  `"(?:auth|identitytoken|registrytoken)"[ \t]*:\s*"([A-Za-z0-9+/._-]{12,}={0,2})"`,
		Literals: []string{"auth", "identitytoken", "registrytoken"}, Before: 4, near: quotation, loose: true,
	},
	{
		Name:     "composer-auth",
		Source:   "https://getcomposer.org/doc/articles/authentication-for-private-packages.md",
		Pattern:  `"(?:github-oauth|gitlab-oauth|gitlab-token|bearer)"\s*:\s*\{\s*"[^"\s]+"\s*:\s*"([^"\s]{16,})"`,
		Literals: []string{"github-oauth", "gitlab-oauth", "gitlab-token", "bearer"}, Before: 4, After: 200, near: quoted,
	},
	{
		Name:     "bundler",
		Source:   "https://bundler.io/man/bundle-config.1.html#CREDENTIALS-FOR-GEM-SOURCES",
		Pattern:  `\bBUNDLE_[A-Z0-9_]+__[A-Z0-9_]+["']?[ \t]*[:=][ \t]*["']?((?:[\w.@-]+:)?[^\s"'<&]{8,})`,
		Literals: []string{"BUNDLE_"}, Before: 2, After: 160, near: variable, loose: true,
	},
	{
		Name:     "maven-master",
		Source:   "https://maven.apache.org/guides/mini/guide-encryption.html",
		Pattern:  `<(?:master|password|passphrase)>\s*(\{[A-Za-z0-9+/=]{16,}\})\s*<`,
		Literals: []string{"<master>", "<password>", "<passphrase>"}, Before: 2, After: 160,
	},
	{
		Name:     "wireguard",
		Source:   "https://man7.org/linux/man-pages/man8/wg.8.html",
		Pattern:  `(?i)(?:private|preshared)_?key["']?[ \t]*[=:]\s*["']?([A-Za-z0-9+/]{43}=)`,
		Literals: []string{"privatekey", "presharedkey", "private_key", "preshared_key"}, Fold: true, near: assignment, Before: 4,
	},
	{
		Name:     "wifi",
		Source:   "https://w1.fi/cgit/hostap/plain/wpa_supplicant/wpa_supplicant.conf",
		Pattern:  `(?i)\b(?:psk|wpa_passphrase|wep_key\d|sae_password)[ \t]*[=:]\s*(?:"([^"\r\n]{8,63})"|([^\s"']{8,64}))`,
		Literals: []string{"psk", "wpa_passphrase", "wep_key", "sae_password"}, Fold: true, near: keyValue, Before: 4, loose: true,
	},
	{
		Name:     "oracle",
		Source:   "https://docs.oracle.com/en/database/oracle/oracle-database/19/sqpug/starting-SQL-Plus.html",
		Pattern:  `(?i)(?:\b(?:sqlplus|sqlldr|expdp|impdp|exp|imp|rman\s+target|sqlcl?)\s+(?:-\w+\s+)*["']?(?:userid=)?|jdbc:oracle:\w+:)[\w$#"]{1,60}/["']?([^\s"'/@]{4,})["']?(?:@|\s|$)`,
		Literals: []string{"sqlplus", "sqlldr", "expdp", "impdp", "rman ", "jdbc:oracle", "sqlcl"}, Fold: true, Before: 2, near: slashed, loose: true,
	},
	{
		Name:     "oracle",
		Source:   "https://docs.oracle.com/en/database/oracle/oracle-database/19/sqpug/CONNECT.html",
		Pattern:  `(?i)\bconn(?:ect)?\s+[\w$#"]{1,60}/["']?([^\s"'/@]{4,})["']?@`,
		Literals: []string{"connect ", "conn "}, Fold: true, Before: 2, near: login, loose: true,
	},
	{
		Name:     "jdbc",
		Source:   "https://learn.microsoft.com/sql/connect/odbc/dsn-connection-string-attribute",
		Pattern:  `(?i)(?:^|[;?&"'\s,({])(?:password|pwd|secret|sharedaccesskey|accountkey)[ \t]*=[ \t]*(?:\{([^}\r\n]{6,})\}|'([^'\r\n]{6,})'|"([^"\r\n]{6,})"|([^;&"'\s\\` + "`" + `<>]{6,}))`,
		Literals: []string{"password", "pwd", "secret", "sharedaccesskey", "accountkey"}, Fold: true, Before: 4, near: keyValue, loose: true,
	},
	{
		Name:     "ansible-vault",
		Source:   "https://docs.ansible.com/ansible/latest/vault_guide/vault_using_encrypted_content.html",
		Pattern:  `(?:vault_password|ansible_(?:ssh_pass|password|become_pass(?:word)?|sudo_pass))["']?[ \t]*[=:]\s*["']?([^\s"'\\]{6,})`,
		Literals: []string{"vault_password", "ansible_ssh_pass", "ansible_password", "ansible_become_pass", "ansible_sudo_pass"},
		near:     assignment, Before: 4, loose: true,
	},
	{
		Name:   "chap-secrets",
		Source: "https://man7.org/linux/man-pages/man8/pppd.8.html",
		Pattern: `(?m)` + lineStart + `["']?[\w.@*-]+["']?[ \t]+["']?(?:\*|\w*(?:pppd?|pptpd?|l2tpd?))["']?[ \t]+(?:"([^"\s]{6,})"|([^\s"'<&]{6,}))["']?` +
			`[ \t]*(?:$|[ \t]["']?(?:\*|\d+\.\d+\.|-))`,
		Literals: []string{"\t*\t", `\t*\t`, "  *  ", `"*"`, "\" * \"", "pptpd", "l2tpd", "pppd"},
		Before:   64, After: 120, near: peer, loose: true,
	},
	{
		Name:     "curl-user",
		Source:   "https://curl.se/docs/manpage.html#-K",
		Pattern:  `(?m)` + lineStart + `(?:proxy-)?user[ \t]*=[ \t]*"?[\w.@-]{1,64}:([^\s"'<&]{6,})"?` + lineEnd,
		Literals: []string{"user=", "user ="}, Before: 16, After: 160, near: loginName, loose: true,
	},
	{
		Name:     "openvpn-user",
		Source:   "https://openvpn.net/community-resources/reference-manual-for-openvpn-2-6/",
		Pattern:  `<auth-user-pass>\s*[^\s<]+\s+([^\s<]{4,})\s*</auth-user-pass>`,
		Literals: []string{"<auth-user-pass>"}, Before: 2, After: 160, loose: true,
	},
	{
		Name:     "password-hash",
		Source:   "https://github.com/qbittorrent/qBittorrent/wiki",
		Pattern:  `@ByteArray\(([A-Za-z0-9+/]{20,}={0,2}:[A-Za-z0-9+/]{40,}={0,2})\)`,
		Literals: []string{"@ByteArray("}, Before: 2, After: 200,
	},
	{
		Name:     "password",
		Source:   "https://doc.dovecot.org/latest/core/config/auth/databases/passwd_file.html",
		Pattern:  `\{(?:PLAIN|CLEARTEXT)\}([^\s"'<&:]{5,})`,
		Literals: []string{"{PLAIN}", "{CLEARTEXT}"}, Before: 2, After: 80, loose: true,
	},
	{ // as programs print it
		Name:     "printed",
		Source:   "https://dev.mysql.com/doc/refman/8.4/en/data-directory-initialization.html",
		Pattern:  `(?i)(?:pass(?:word|phrase) (?:is|was|for|of)\b[^\n:=]{0,60}[:=]|(?:unseal|recovery|secret|access) key (?:\d{1,2} )?(?:\d{1,2}|is):)[ \t]*["']?([^\s"'<&` + "`" + `]{6,})`,
		Literals: []string{"password is", "password was", "password for", "password of", "phrase is", "phrase for", "unseal key", "recovery key", "secret key is", "access key is"},
		Fold:     true, Before: 8, After: 120, near: nearby, loose: true,
	},
	{ // what a section is for is said by its name only
		Name:   "section",
		Source: "https://svnbook.red-bean.com/en/1.7/svn.serverconfig.svnserve.html",
		Pattern: `(?im)(?:` + lineStart + `\[(?:[\w .-]*[ ._-])?(?:passwords?|passwd|credentials|secrets|(?:api[ _-]?|access[ _-]?)(?:tokens|keys)|users|logins)\]|` +
			lineStart + `["']?(?:[\w.-]*[._-])?(?:passwords|credentials|secrets|(?:api_?|access_?)(?:tokens|keys))["']?[ \t]*(?::=|=>|[=:])?)` + members + strings.Repeat(furtherLine, 11),
		Literals: []string{"passwords", "credentials", "secrets", "password]", "passwd]", "users]", "logins]", "tokens]", "keys]", "api_tokens", "apitokens",
			"api_keys", "apikeys"},
		Fold: true, Before: 64, After: 900, near: section, many: true, loose: true,
	},
	{
		Name:     "section",
		Source:   "https://cloudinit.readthedocs.io/en/latest/reference/modules.html#set-passwords",
		Pattern:  `chpasswd["']?:[\s\S]{0,80}?list["']?:\s*[|>\[]?[+-]?` + strings.Repeat(`(?:[\s,]*["'-]*\s*["']?[\w.-]{1,32}:([^\s"'<&,:]{6,})["']?)?`, 6),
		Literals: []string{"chpasswd"}, Before: 4, After: 480, many: true, loose: true,
	},
	{
		Name:     "mail-login",
		Source:   "https://www.exim.org/exim-html-current/doc/html/spec_html/ch-the_plaintext_authenticator.html",
		Pattern:  `client_send\s*=\s*(?:<\S\s*)?[:^]*\s*[^\s:^]+\s*[:^]+\s*([^\s"'<&:^]{6,})|\$auth\d\}\s*\{([^\s"'<&{}$]{6,})\}`,
		Literals: []string{"client_send", "$auth1}", "$auth2}", "$auth3}"}, Before: 4, After: 160, loose: true,
	},
	{ // a host, the name of a user, and a password
		Name:     "mail-login",
		Source:   "https://www.postfix.org/SASL_README.html#client_sasl_enable",
		Pattern:  `(?:^|[\s"'\[>])(?:smtp|mail|relay|email-smtp)[\w-]*(?:\.[\w-]+)+\]?(?::\d{2,5})?(?:[ \t]+|:)[^\s:@"']+(?:@[\w.-]+)?:([^\s"'<&:/@]{6,})(?:$|[\s"'<&\\])`,
		Literals: []string{"smtp", "mail.", "relay."}, Before: 12, After: 200, near: mailHost, loose: true,
	},
	{
		Name:   "state",
		Source: "https://registry.terraform.io/providers/hashicorp/random/latest/docs/resources/password",
		Pattern: `(?:random_(?:password|string)|"(?:attributes|bcrypt_hash|override_special|special|min_(?:upper|lower|special|numeric))")[^\[\]]{0,500}?["']?\bresult["']?\s*[=:]\s*` +
			`"([^"\s]{6,})"`,
		Literals: []string{"random_password", "random_string", "bcrypt_hash", "override_special", "attributes"}, Before: 4, After: 600, near: resulting, loose: true,
	},
	{
		Name:     "pwdump",
		Source:   "https://www.openwall.com/passwords/pwdump",
		Pattern:  `:\d{1,10}:([0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::`,
		Literals: []string{":::"}, Before: 84, After: 4, near: dumped,
	},
	{
		Name:     "rpcauth",
		Source:   "https://github.com/bitcoin/bitcoin/tree/master/share/rpcauth",
		Pattern:  `rpcauth=[\w.-]+:([0-9a-f]{16,64}\$[0-9a-f]{64})`,
		Literals: []string{"rpcauth="}, Before: 2, After: 200,
	},
	{
		Name:   "openvpn-key",
		Source: "https://openvpn.net/community-resources/reference-manual-for-openvpn-2-6/",
		Pattern: `-----BEGIN OpenVPN [\w -]{4,40}-----(?:([\s\S]{40,}?)-----END OpenVPN |` +
			`((?:` + keyBreak + `[A-Za-z0-9+/=]{20,76}){1,}))`,
		Literals: []string{"-----BEGIN OpenVPN "}, Before: 4, After: 4096,
	},
	token("password-hash", "https://www.rfc-editor.org/rfc/rfc2849", `(?:e1NTSEF|e1NIQX|e0NSWVBU)[A-Za-z0-9+/]{20,}={0,2}`,
		"e1NTSEF", "e1NIQX", "e0NSWVBU"), // in LDIF
	{
		Name:     "wallet-key",
		Source:   "https://ethereum.org/developers/docs/accounts/",
		Pattern:  `(?i)private[ _-]?key\W{1,6}(?:0x)?([0-9a-f]{64})(?:[^\w]|\z)`,
		Literals: []string{"private key", "private_key", "privatekey"}, Fold: true, Before: 2, After: 96, near: spaced,
	},
}

// readers are programs, with their options, that read a secret from their input.
const readers = `--password-stdin|--with-token|--passphrase-fd|--stdin\b|-stdinpass|sudo\s+(?:-\w+\s+)*-S|-pass(?:in)?\s+stdin|cryptsetup|kinit|\bsu\s|` +
	`gh\s+(?:auth|secret|variable)|(?:secrets?|env|variable)(?:\s+versions)?[\s:]+(?:create|set|put|add|import)|store-secret|gcloud\s+secrets|` +
	`/dev/stdin|(?:sm|vnc|ch|yp)?passwd\b|pdbedit|newusers|pass\s+insert|op\s+(?:signin|item|document)|bw\s+(?:login|unlock)|lpass\s+login|keepassxc-cli|` +
	`restic\b|borg\s|zfs\s+(?:create|load-key)|zpool\s+create|vault\s+(?:login|kv|write)|npm\s+login|encrypt_string|security\s+\w+-keychain|` +
	`base64\b[^\n|]{0,20}\|\s*kubectl|\b[\w-]+\s+(?:\w+\s+)?login\b|heroku\s+auth|databricks\s+configure|age\s+-p|ansible-vault|-data-file=-`

// pipeRules are for secrets that programs are given by the shell: through a pipe, from a string, or as a file.
var pipeRules = []Rule{
	{
		Name:     "command",
		Source:   "https://www.gnu.org/software/bash/manual/bash.html#Here-Strings",
		Pattern:  `(?:` + readers + `|gpg2?\s)[^\n|;&<]{0,160}<<<\s*` + commandValue,
		Literals: []string{"<<<"}, Before: 240, After: 160, loose: true, near: words,
	},
	{
		Name:   "command",
		Source: "https://docs.docker.com/reference/cli/docker/login/#password-stdin",
		Pattern: `(?:echo|printf|yes)\s+(?:-[neE]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?` + commandValue + `(?:\s+["'][^"'\n]{0,60}["'])?\s*(?:;[^\n|]{0,60}\))?\s*\|\s*(?:[^\n|]{0,120}?)` +
			`(?:` + readers + `)`,
		Literals: []string{"passwd", "gh secret", "gh variable", "env add", "secret put", "secret set", "secret create", "secrets ", "secrets:", "/dev/stdin", "pass insert",
			"op signin", "lpass login", "keepassxc", "restic ", "store-secret", "| kubectl", "login", "unlock", "stdinpass", "data-file=-", "create-secret"},
		Before: 220, After: 60, loose: true, near: piped,
	},
	{
		Name:   "command",
		Source: "https://www.gnu.org/software/bash/manual/bash.html#Process-Substitution",
		Pattern: `(?i)(?:pass\w*|secret|key|token|data-file|auth|keyfile|user-pass|private-key)[\w-]*[= ]["']?[<$]\(\s*(?:echo|printf)\s+(?:-[ne]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?` +
			commandValue,
		Literals: []string{"<(echo", "<(printf", "<( echo", "$(echo", "$(printf"}, Before: 48, After: 160, loose: true, near: words,
	},
	{
		Name:     "command",
		Source:   "https://marlam.de/msmtp/msmtp.html#Authentication-commands",
		Pattern:  `(?i)pass(?:word|phrase)?[-_]?(?:cmd|eval|command)["']?[ \t:=]+["']?(?:echo|printf)\s+(?:-n\s+)?["']?([^\s"'` + "`" + `|<>;&]{5,})`,
		Literals: []string{"passcmd", "wordeval", "word-command", "word_command", "wordcommand", "phrase-command"}, Fold: true,
		Before: 16, After: 120, loose: true, near: words,
	},
	{
		Name:     "redis-acl",
		Source:   "https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/",
		Pattern:  `(?i)\b(?:set)?user\s+[\w.@*-]+\s+(?:[^\s>]+\s+){0,12}?["']?(?:>([^\s"'<&>=]{6,})|#([0-9a-f]{64}))(?:$|[\s"'<&])`,
		Literals: []string{"setuser ", " on >", " on #", " on '>", ` on ">`, " ~* ", "allkeys", "sanitize-payload"}, Fold: true,
		Before: 200, After: 240, near: acl, loose: true,
	},
	{
		Name:     "redis-auth",
		Source:   "https://redis.io/docs/latest/commands/auth/",
		Pattern:  `(?m)(?:` + lineStart + `|(?:-cli\b[^\n|;]{0,80}|HELLO \d |> ?)\s?)AUTH[ \t]+(?:[\w.-]+[ \t]+)?["']?([^\s"'<&` + "`" + `]{6,})["']?` + lineEnd,
		Literals: []string{"AUTH "}, Before: 100, After: 120, near: spacedValue, loose: true,
	},
	following(`vault\s+operator\s+unseal[ \t]|eas\s+secret:create[^\n|;]*\s--value|(?:doppler|infisical|supabase|convex|railway|circleci|sst|nx|eas)\s+(?:secrets?|env|variables?)(?:[\s:]+(?:set|add|create))?\s+(?:--\w+\s+)?["']?\w+[= ]|`+
		`chamber\s+write\s+\S+\s+\S+|openssl\s+(?:passwd\s+(?:-(?:[156]|apr1|salt\s+\S+)\s+)*|[^\n|;]*\s(?:-hmac|-K)\s)|`+
		`mkpasswd\s+(?:-m\s+\S+\s+)|acl\s+set-agent-token\s+\S+\s|etcdctl\s+user\s+add\s+\w+:|impacket-\w+\s+[\w.\\-]+/[\w.-]+:|`+
		`(?:plink|pscp|psftp|putty|mqtt|kitty|winscp)(?:\.exe|\.com)?\s[^\n|;]*-pw|`+
		`signtool(?:\.exe)?\s+sign\b[^\n|;]*\s/p|reg(?:\.exe)?\s+add\s[^\n|;]*(?i:password)[^\n|;]*\s/d|schtasks[^\n|;]*\s/rp|`+
		`security\s+(?:set-key-partition-list|import|export|set-keychain-password)\s[^\n|;]*\s-[kpP]|security\s+create-keychain\s+-p|`+
		`vercel\b[^\n|;]*\s-t|influx\s[^\n|;]*\s-t|netlify\s[^\n|;]*\s--auth|snmp\w+\s[^\n|;]*-c|jenkins-cli(?:\.jar)?\s[^\n|;]*-auth\s+[\w.-]+:|`+
		`smbclient\s+["']?//[^\s"']+["']?\s|vault\s+(?:kv\s+(?:put|patch)|write)\s[^\n|;]*\s\w*(?:key|value|pass|secret|token)\w*=|pdfto\w+\s+-[uo]pw|qpdf\s+--encrypt\s|`+
		`(?:--?(?i:store|key)pass|-Dsonar\.(?:login|token))|sp_add\w{0,12}login[^\n;]*,`,
		"doppler ", "infisical ", "supabase ", "convex ", "railway ", "circleci ", "eas secret", "eas env", "chamber write", "openssl passwd", "mkpasswd ", " -hmac ", " -K ",
		"set-agent-token", "user add ", "impacket-", "plink", "pscp", "psftp", "mqtt ", "signtool", "reg add", "reg.exe", "schtasks",
		"security set-", "security import", "security export", "security create", "vercel ", "influx ", "netlify ", "snmp", "jenkins-cli", "smbclient", "vault kv", "operator unseal",
		"pdfto", "qpdf ", "-Dsonar.", "sp_addl"),
	program("https://curl.se/docs/manpage.html#-E", `curl|curlie`, `(?:-E|--cert|--proxy-cert)[= ]?[ \t]*["']?[^\s:"']{1,100}:`, "curl"),
}

// pathKey is a key in the path of a URL, as vendors make them.
const pathKey = `([A-Za-z0-9_-]{20,}|[A-Za-z0-9]{10,19})(?:[^\w-]|\z)`

// urlRules are for keys that are parts of URLs: who has one may call the service, or post to the channel.
var urlRules = []Rule{
	{
		Name:   "url-key",
		Source: "https://docs.metamask.io/services/how-to/secure-an-api/",
		Pattern: `(?:infura\.io|alchemy\.com|alchemyapi\.io|ankr\.com|quiknode\.pro|tenderly\.co|blastapi\.io|getblock\.io|chainstack\.com|` +
			`nodereal\.io|llamarpc\.com|moralis-nodes\.com|figment\.io|chainnodes\.org|drpc\.org|zmok\.io)/(?:[a-z0-9.-]{1,19}/){0,4}` + pathKey,
		Literals: []string{"infura", "alchemy.com/", "alchemyapi.io/", "ankr.com/", "quiknode.pro/", "tenderly.co/", "blastapi.io/", "getblock.io/",
			"chainstack.com/", "nodereal.io/", "llamarpc.com/", "moralis-nodes.com/", "figment.io/", "chainnodes.org/", "drpc.org/", "zmok.io/"},
		Before: 2, After: 200, Entropy: 2.8, loose: true,
	},
	{
		Name:   "webhook",
		Source: "https://open.larksuite.com/document/client-docs/bot-v3/add-custom-bot",
		Pattern: `(?:open-apis/bot/v2/hook|maker\.ifttt\.com/trigger/[^/\s]{1,60}(?:/json)?/with/key|pagerduty\.com/(?:integration|x-ere)|` +
			`hooks\.zapier\.com/hooks/catch/\d{1,20}|hook\.(?:[a-z0-9]+\.)?(?:make|integromat)\.com|` +
			`rocket\.chat/hooks|mattermost\.[\w.-]+/hooks|hc-ping\.com|webhook\.site|m\.pipedream\.net)/(?:([A-Za-z0-9-]{20,})|([A-Za-z0-9]{6,19}))(?:[^\w-]|\z)`,
		Literals: []string{"/bot/v2/hook/", "/with/key/", "pagerduty.com/", "hooks.zapier", "make.com/", "integromat.com/",
			"rocket.chat/hooks", "mattermost.", "hc-ping.com/", "webhook.site/", "pipedream.net/"},
		Before: 80, After: 160, Entropy: 2.3,
	},
	{
		Name:     "teams-webhook",
		Source:   "https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook",
		Pattern:  `office\.com/webhook(?:b2)?/([\w@/-]{60,})`,
		Literals: []string{"office.com/webhook"}, Before: 2, After: 400,
	},
	{
		Name:     "query",
		Source:   "https://openweathermap.org/appid",
		Pattern:  `[?&](?:amp;)?(?:appid|app_key|apiToken|authtoken|zapikey|access_key)=([A-Za-z0-9_.-]{20,})(?:[^\w.-]|\z)`,
		Literals: []string{"appid=", "app_key=", "apiToken=", "authtoken=", "zapikey=", "access_key="}, Before: 8, After: 160, Entropy: 3.2, loose: true,
	},
	{
		Name:     "app-insights",
		Source:   "https://learn.microsoft.com/azure/azure-monitor/app/connection-strings",
		Pattern:  `InstrumentationKey=(` + uuid + `)`,
		Literals: []string{"InstrumentationKey="}, Before: 2, After: 64,
	},
	{
		Name:     "deepl",
		Source:   "https://developers.deepl.com/docs/getting-started/auth",
		Pattern:  `(?:^|[^\w-])(` + uuid + `:fx)(?:[^\w]|\z)`,
		Literals: []string{":fx"}, Before: 48, After: 4,
	},
	{
		Name:     "azure-ai",
		Source:   "https://learn.microsoft.com/purview/sit-defn-azure-cognitive-services-key",
		Pattern:  `(?:^|[^A-Za-z0-9])([A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,30}|[A-Za-z0-9]{32}JQQJ99[A-Za-z0-9]{20,46})(?:[^A-Za-z0-9]|\z)`,
		Literals: []string{"JQQJ99"}, Before: 56, After: 52,
	},
}

// newerRules are for further prefixes of tokens.
var newerRules = []Rule{
	token("stytch", "https://stytch.com/docs/api", `secret-(?:live|test)-[\w=-]{30,60}`, "secret-live-", "secret-test-"),
	token("inngest", "https://www.inngest.com/docs/platform/signing-keys", `signkey-[a-z]{4,8}-[a-f0-9]{32,64}\b`, "signkey-"),
	token("trigger", "https://trigger.dev/docs/apikeys", `tr_(?:prod|dev|stg|preview|pat)_[A-Za-z0-9]{16,48}\b`, "tr_prod_", "tr_dev_", "tr_stg_", "tr_preview_", "tr_pat_"),
	token("axiom", "https://axiom.co/docs/reference/tokens", `xa[ap]t-`+uuid, "xaat-", "xapt-"),
	token("xata", "https://xata.io/docs/concepts/api-keys", `xau_[A-Za-z0-9]{24,48}\b`, "xau_"),
	mixed(token("fauna", "https://docs.fauna.com/fauna/current/learn/security/keys/", `(fn[A-Z]{2}[\w-]{34,40})(?:[^\w-]|\z)`, "fnAC", "fnAD",
		"fnAE", "fnAF", "fnAG", "fnAH")),
	token("figma", "https://www.figma.com/developers/api#access-tokens", `figu[hr]?_[\w-]{40,}`, "figu_", "figuh_", "figur_"),
	token("trello", "https://developer.atlassian.com/cloud/trello/guides/rest-api/api-introduction/", `ATTA[a-f0-9]{60,76}\b`, "ATTA"),
	token("cal", "https://cal.com/docs/api-reference/v1/authentication", `cal_(?:live_|test_)[a-f0-9]{32}\b`, "cal_live_", "cal_test_"),
	token("cloudflare", "https://developers.cloudflare.com/fundamentals/api/get-started/token-formats/", `cf(?:[uact]t|k|o)_[A-Za-z0-9_-]{36,60}`,
		"cfut_", "cfat_", "cfct_", "cftt_", "cfk_", "cfo_"),
	token("instagram", "https://developers.facebook.com/docs/instagram-platform/", `IG(?:QV|QW|AA)[\w-]{60,}`, "IGQV", "IGQW", "IGAA"),
	random(3.6, token("twitter-bearer", "https://docs.x.com/fundamentals/authentication/oauth-2-0/application-only",
		`(A{21,24}[B-Za-z0-9%][A-Za-z0-9%]{30,120})(?:[^A-Za-z0-9+/=%]|\z)`, "AAAAAAAAAAAAAAAAAAAAA")),
	random(3.8, token("backblaze", "https://www.backblaze.com/docs/cloud-storage-application-keys", `(K00\d[A-Za-z0-9+/]{27})(?:[^A-Za-z0-9+/=]|\z)`,
		"K000", "K001", "K002", "K003", "K004", "K005")),
	random(4, token("model-key", "https://docs.litellm.ai/docs/proxy/virtual_keys", `(sk-(?:[a-z0-9]{2,16}-)?[A-Za-z0-9]{20,31})(?:[^\w-]|\z)`, "sk-")),
	token("age", "https://github.com/C2SP/C2SP/blob/main/age.md", `AGE-(?:SECRET-KEY-PQ|PLUGIN-[A-Z0-9]+)-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{30,}`,
		"AGE-SECRET-KEY-PQ-", "AGE-PLUGIN-"),
	token("minisign", "https://jedisct1.github.io/minisign/#signature-format", `RW(?:RTY0Iy|RCS[A-Za-z0-9+/]{3})[A-Za-z0-9+/]{100,}={0,2}`, "RWRTY0Iy", "RWRCS"),
}
