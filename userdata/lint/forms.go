package lint

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// cloudKeys are the modules of cloud-init that users write; another key is most likely
// misspelled, and cloud-init ignores it.
var cloudKeys = []string{
	"apk_repos", "apt", "bootcmd", "ca_certs", "chpasswd", "cloud_config_modules", "cloud_final_modules", "cloud_init_modules", "datasource", "disable_ec2_metadata",
	"disable_root", "disk_setup", "fqdn", "fs_setup", "groups", "growpart", "hostname", "keyboard", "locale", "manage_etc_hosts", "merge_how", "merge_type", "mounts",
	"mount_default_fields", "network", "ntp", "output", "package_reboot_if_required", "package_update", "package_upgrade", "packages", "password", "phone_home", "power_state",
	"prefer_fqdn_over_hostname", "preserve_hostname", "random_seed", "resize_rootfs", "resolv_conf", "rsyslog", "runcmd", "snap", "ssh", "ssh_authorized_keys", "ssh_deletekeys",
	"ssh_genkeytypes", "ssh_import_id", "ssh_keys", "ssh_pwauth", "swap", "system_info", "timezone", "updates", "user", "users", "wireguard", "write_files", "yum_repos", "yum_repo_dir", "zypper",
}

func (l *linter) cloudConfig(text string) {
	l.secrets(text)
	var doc map[string]json.RawMessage
	if err := yaml.UnmarshalStrict([]byte(text), &doc); err != nil {
		l.add(Schema, true, 0, "not YAML: %v", err)
		return
	}
	for key := range doc {
		if !slices.Contains(cloudKeys, key) {
			l.add(Schema, false, 0, "cloud-init knows no key %s and would ignore it", key)
		}
	}
	if l.System == "flatcar" {
		l.add(Schema, false, 0, "Flatcar reads cloud-config only in part, and at every boot: use ignition")
	}
	var files []struct{ Path, Content, Encoding, Permissions string }
	l.decode("write_files", doc["write_files"], &files)
	for _, f := range files {
		body, err := fileContent(f.Content, f.Encoding)
		switch {
		case f.Path == "" || !strings.HasPrefix(f.Path, "/"):
			l.add(Schema, true, 0, "write_files: path %q is not absolute", f.Path)
		case err != nil:
			l.add(Schema, true, 0, "write_files: %s: %v", f.Path, err)
		default:
			l.file(f.Path, body, f.Permissions)
		}
	}
	var run, boot []any
	l.decode("runcmd", doc["runcmd"], &run)
	l.decode("bootcmd", doc["bootcmd"], &boot)
	l.script(commands(run), false)
	if len(boot) > 0 {
		l.script("# bootcmd\n"+commands(boot), true)
	}
}

func (l *linter) decode(key string, text json.RawMessage, into any) {
	if text == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		l.add(Schema, true, 0, "%s: %v", key, err)
	}
}

// commands writes runcmd's strings and lists as a script.
func commands(list []any) string {
	var b strings.Builder
	for _, c := range list {
		switch c := c.(type) {
		case string:
			b.WriteString(c + "\n")
		case []any:
			for _, word := range c {
				if s, ok := word.(string); ok {
					b.WriteString("'" + strings.ReplaceAll(s, "'", `'\''`) + "' ")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func fileContent(text, encoding string) (string, error) {
	switch strings.ToLower(encoding) {
	case "", "text/plain":
		return text, nil
	case "b64", "base64":
		raw, err := base64.StdEncoding.DecodeString(text)
		return string(raw), err
	}
	raw := []byte(text)
	if strings.Contains(encoding, "64") {
		var err error
		if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
			return "", err
		}
	}
	out, err := userdata.Gunzip(bytes.NewReader(raw))
	return string(out), err
}

// file judges a file that user data writes.
func (l *linter) file(path, body, mode string) {
	readable := mode == "" || len(mode) > 0 && mode[len(mode)-1] != '0'
	if readable && joinToken.MatchString(body) {
		l.add(Exposed, true, 0, "%s holds a join token and every user may read it: give it permissions 0600", path)
	}
	if l.System == "flatcar" && (strings.HasPrefix(path, "/usr/") || strings.HasPrefix(path, "/lib/")) {
		l.add(ReadOnly, true, 0, "%s: /usr is read-only on Flatcar: use /opt or /etc", path)
	}
	if strings.HasPrefix(body, "#!") {
		l.script(body, false)
	} else {
		l.secrets(body)
		l.kubeadm(body)
	}
}

func mimeHead(text string) bool {
	head, _, _ := strings.Cut(text, "\n\n")
	head, _, _ = strings.Cut(head, "\r\n\r\n")
	return strings.Contains(strings.ToLower(head), "content-type:") && len(head) < 4096
}

func (l *linter) mime(text string) {
	if l.System == "flatcar" {
		l.add(Schema, true, 0, "Flatcar does not read MIME: use ignition")
	}
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		l.add(Schema, true, 0, "not MIME: %v", err)
		return
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		l.add(Schema, true, 0, "the header names no multipart type with a boundary")
		return
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if err != nil {
			if err != io.EOF {
				l.add(Schema, true, 0, "MIME: %v", err)
			} else if n == 0 {
				l.add(Schema, true, 0, "MIME without a part: the machine would do nothing")
			}
			return
		}
		body, err := io.ReadAll(part)
		if err != nil {
			l.add(Schema, true, 0, "MIME: part %d: %v", n+1, err)
			return
		}
		if strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "base64") {
			if body, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(body)), "")); err != nil {
				l.add(Schema, true, 0, "MIME: part %d: %v", n+1, err)
				continue
			}
		}
		l.document(body)
	}
}

// ignition judges what Ignition's own parser would refuse or Flatcar does not know.
func (l *linter) ignition(text string) {
	var doc struct {
		Ignition struct{ Version string } `json:"ignition"`
		Storage  struct {
			Files []struct {
				Path     string
				Mode     int
				Contents struct{ Source, Compression string }
			}
		} `json:"storage"`
		Systemd json.RawMessage `json:"systemd"`
		Passwd  json.RawMessage `json:"passwd"`
		Kernel  json.RawMessage `json:"kernelArguments"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		l.add(Schema, true, 0, "not Ignition's JSON: %v", err)
		return
	}
	switch v := doc.Ignition.Version; v {
	case "3.0.0", "3.1.0", "3.2.0", "3.3.0":
	case "":
		l.add(Schema, true, 0, "JSON without ignition.version: the machine would ignore it")
	default:
		l.add(Schema, l.System == "flatcar", 0, "Ignition %s: Flatcar reads 3.3.0 and older", v)
	}
	if l.System != "" && l.System != "flatcar" {
		l.add(Schema, true, 0, "%s does not read Ignition: use script, cloud-config or mime", l.System)
	}
	for _, f := range doc.Storage.Files {
		l.ignitionFile(f.Path, f.Contents.Source, f.Contents.Compression, f.Mode)
	}
}

func (l *linter) ignitionFile(path, source, compression string, mode int) {
	if !strings.HasPrefix(path, "/") {
		l.add(Schema, true, 0, "storage.files: path %q is not absolute", path)
		return
	}
	body, ok := strings.CutPrefix(source, "data:")
	if !ok {
		if source != "" && !strings.HasPrefix(source, "s3:") {
			l.add(Unchecked, false, 0, "%s is fetched from an address: pin it with verification.hash", path)
		}
		return
	}
	head, body, _ := strings.Cut(body, ",")
	encoding := ""
	if strings.HasSuffix(head, ";base64") {
		encoding = "b64"
	} else if text, err := url.PathUnescape(body); err == nil {
		body = text
	}
	if compression == "gzip" {
		encoding = "gz+" + encoding
	}
	text, err := fileContent(body, encoding)
	if err != nil {
		l.add(Schema, true, 0, "storage.files: %s: %v", path, err)
		return
	}
	permissions := "0644"
	if mode != 0 && mode&0o004 == 0 {
		permissions = "0600"
	}
	l.file(path, text, permissions)
}
