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
