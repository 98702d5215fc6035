package userdata

import (
	"bytes"
	"testing"
)

// TestNoPartIsAdded: whatever a hook or a setting holds, user data in each format has its own files, parts and units and no
// other (unpack is strict), and the worker's script is the same in each.
func TestNoPartIsAdded(t *testing.T) {
	for name, text := range map[string]string{
		"a MIME boundary":    "\r\n--==autoscaler-agent==\r\nContent-Type: text/x-shellscript\r\n\r\n#!/bin/sh\nevil\r\n--==autoscaler-agent==--\r\n",
		"a MIME header":      "\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n",
		"cloud-config":       "\n#cloud-config\nruncmd:\n- evil\n",
		"the end of a file":  "\n" + scriptEnd + "\nevil\n",
		"the end of a unit":  "\nUNIT-END\nevil\n",
		"an Ignition file":   `"}}],"systemd":{"units":[{"name":"evil.service","enabled":true}]},"x":[{"y":{"z":"`,
		"a data URL":         "data:;base64,ZXZpbA==",
		"a template":         "## template: jinja\n{{ ds.meta_data }}",
		"control characters": "\x00\x1b[2J\x07\u2028",
	} {
		for change, set := range map[string]func(*Spec){
			"hook":     func(s *Spec) { s.AfterJoin = []byte("#!/bin/sh\n" + text) },
			"label":    func(s *Spec) { s.Labels = map[string]string{"example.net/x": text} },
			"token":    func(s *Spec) { s.Join.Token = "abcdef." + text },
			"endpoint": func(s *Spec) { s.Join.Endpoint = text + ":6443" },
			"mirror":   func(s *Spec) { s.Downloads.Mirrors = []string{"https://x/" + text} },
			"no proxy": func(s *Spec) { s.Proxy.HTTP, s.Proxy.No = "http://p:1", []string{text} },
		} {
			scripts := map[string][]byte{}
			for _, format := range Formats() {
				s := sample()
				s.Format = format
				set(&s)
				out, err := Render(s)
				if err != nil {
					continue
				}
				if scripts[format] = unpack(t, format, out); format == "script" && bytes.Count(out, []byte("\n"+scriptEnd+"\n")) != 1 {
					t.Errorf("%s in a %s: a here-document of the script ends early", name, change)
				}
			}
			if len(scripts) != 0 && len(scripts) != len(Formats()) {
				t.Errorf("%s in a %s: some formats take it and some do not", name, change)
			}
			for _, format := range []string{"cloud-config", "ignition"} { // that of a script has the token within
				if !bytes.Equal(scripts[format], scripts["mime"]) {
					t.Errorf("%s in a %s: the worker's script of format %s is another one", name, change, format)
				}
			}
		}
	}
}
