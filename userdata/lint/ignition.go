package lint

import (
	"encoding/json"
	"net/url"
	"strings"
)

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
		Systemd struct {
			Units []struct {
				Name, Contents string
				Dropins        []struct{ Name, Contents string }
			}
		} `json:"systemd"`
		Passwd json.RawMessage `json:"passwd"`
		Kernel json.RawMessage `json:"kernelArguments"`
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
	const units = "/etc/systemd/system/" // where Ignition writes them, for every user to read
	for _, u := range doc.Systemd.Units {
		l.in(u.Name, nil).file(units+u.Name, u.Contents, 0o644)
		for _, d := range u.Dropins {
			l.in(d.Name, nil).file(units+u.Name+".d/"+d.Name, d.Contents, 0o644)
		}
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
	if mode == 0 {
		mode = 0o644
	}
	l.in(path, nil).file(path, text, int64(mode))
}
