package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
)

// formats are the forms that user data comes in. Each brings the same script and the same
// unit to the machine.
var formats = map[string]func(Spec, map[string]string) ([]byte, error){
	"script":       Spec.script,
	"cloud-config": Spec.cloudConfig,
	"mime":         Spec.mime,
	"ignition":     Spec.ignition,
}

// Formats are the names of the forms of user data, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

func (s Spec) format() string { return or(s.Format, or(systems[s.System].format, "script")) }

const (
	unitName   = "autoscaler-agent-join.service"
	unitFile   = "/etc/systemd/system/" + unitName
	scriptFile = stateDir + "/worker.sh"
)

// unit starts the script at each boot until the machine has joined: a reboot half-way, or a
// mirror that comes up late, does not strand a machine.
const unit = `[Unit]
Description=Join this machine to its Kubernetes cluster
Wants=network-online.target
After=network-online.target
ConditionPathExists=!/etc/kubernetes/kubelet.conf
StartLimitIntervalSec=3600
StartLimitBurst=5
[Service]
Type=oneshot
ExecStart=/bin/sh ` + scriptFile + `
Restart=on-failure
RestartSec=60
UMask=0077
[Install]
WantedBy=multi-user.target
`

// script is a shell script that puts the worker's script and unit in place. coreos-cloudinit
// (Flatcar) runs it at every boot and cloud-init once per instance; the guard makes both the
// same.
func (s Spec) script(sums map[string]string) ([]byte, error) {
	if s.Join.Attest == "" {
		plain := s.installer("cat >" + scriptFile + " <<'" + scriptEnd + "'\n" + s.worker(sums, true))
		if len(plain) <= Limit(s.Cloud)*9/10 {
			return plain, nil
		}
	}
	// It is compressed where it would leave too little room; the token stays in plain text for WithJoin.
	packed, err := pack(s.worker(sums, false))
	if err != nil {
		return nil, err
	}
	token := ""
	if s.Join.Attest == "" {
		token = "JOIN_TOKEN=" + shellQuote(s.Join.Token) + "\necho \"$JOIN_TOKEN\" >" + tokenFile + "\n"
	}
	return s.installer(token + packedBegin + packed + "\n"), nil
}

// installer is the shell script around the worker's own, which file writes.
func (s Spec) installer(file string) []byte {
	return []byte(`#!/bin/sh
` + s.notice() + `set -eu
umask 077
if [ -e /etc/kubernetes/kubelet.conf ]; then
  echo 'autoscaler-agent: phase=already-joined'
  exit 0
fi
mkdir -p ` + stateDir + `
` + file + scriptEnd + `
cat >` + unitFile + ` <<'UNIT-END'
` + unit + `UNIT-END
chmod 644 ` + unitFile + `
systemctl daemon-reload
systemctl enable ` + unitName + `
systemctl start ` + unitName + `
`)
}

// notice says what a reader of the user data learns.
func (s Spec) notice() string {
	if s.Join.Attest != "" {
		return "# User data made by autoscaler-agent. It holds no secret: the machine attests to get its join token.\n"
	}
	return "# User data made by autoscaler-agent. It holds a join token: keep it from other users.\n"
}

// packedBegin begins the worker's script of the format script where it is compressed.
const packedBegin = "base64 -d <<'" + scriptEnd + "' | gzip -dc >" + scriptFile + "\n"

// Unpack returns the worker's script of user data in the format script that holds it
// compressed; ok tells whether it does.
func Unpack(script []byte) (worker []byte, ok bool, err error) {
	_, rest, ok := bytes.Cut(script, []byte("\n"+packedBegin))
	text, _, ended := bytes.Cut(rest, []byte("\n"+scriptEnd+"\n"))
	if !ok || !ended {
		return nil, false, nil
	}
	if worker, err = Gunzip(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text))); err != nil {
		return nil, true, fmt.Errorf("userdata: the compressed script does not unpack: %w", err)
	}
	return worker, true, nil
}

// Gunzip unpacks a part of user data. More than a megabyte is an error: no cloud takes a
// hundredth of it.
func Gunzip(packed io.Reader) ([]byte, error) {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	const most = 1 << 20
	out, err := io.ReadAll(io.LimitReader(z, most+1))
	if err == nil && len(out) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return out, err
}

// scriptEnd ends the here-document with the worker's script; validate refuses it in a hook.
const scriptEnd = "END-OF-WORKER"

// cloudConfig is a document of cloud-init. JSON is YAML.
func (s Spec) cloudConfig(sums map[string]string) ([]byte, error) {
	packed, err := pack(s.worker(sums, false))
	if err != nil {
		return nil, err
	}
	files := []object{
		{"path": tokenFile, "permissions": "0600", "content": s.Join.Token},
		{"path": scriptFile, "permissions": "0700", "encoding": "gz+b64", "content": packed},
		{"path": unitFile, "permissions": "0644", "content": unit},
	}
	if s.Join.Attest != "" {
		files = files[1:] // no token
	}
	doc := object{
		"write_files": files,
		"runcmd":      [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", unitName}, {"systemctl", "start", unitName}},
	}
	return append([]byte("#cloud-config\n"+s.notice()), encode(doc)...), nil
}

// mime is a multipart message whose one part is the cloud-config; an operator's own parts
// can be added beside it.
func (s Spec) mime(sums map[string]string) ([]byte, error) {
	config, err := s.cloudConfig(sums)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("==autoscaler-agent=="); err != nil {
		return nil, fmt.Errorf("userdata: boundary: %w", err)
	}
	fmt.Fprintf(&b, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", w.Boundary())
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Type":        {`text/cloud-config; charset="utf-8"`},
		"Content-Disposition": {`attachment; filename="worker.cfg"`},
		"MIME-Version":        {"1.0"},
	})
	if err != nil {
		return nil, fmt.Errorf("userdata: part: %w", err)
	}
	if _, err := part.Write(config); err != nil {
		return nil, fmt.Errorf("userdata: part: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("userdata: part: %w", err)
	}
	return b.Bytes(), nil
}

// ignition is a configuration of Ignition 3.3, the newest that every Flatcar release since
// 3185 reads. Ignition does not unpack user data as a whole, so the script is compressed
// as a file.
func (s Spec) ignition(sums map[string]string) ([]byte, error) {
	packed, err := pack(s.worker(sums, false))
	if err != nil {
		return nil, err
	}
	files := []object{
		{"path": tokenFile, "mode": 0o600, "contents": object{"source": "data:," + s.Join.Token}},
		{"path": scriptFile, "mode": 0o700, "contents": object{"source": "data:;base64," + packed, "compression": "gzip"}},
	}
	if s.Join.Attest != "" {
		files = files[1:] // no token
	}
	doc := object{
		"ignition": object{"version": "3.3.0"},
		"storage":  object{"files": files},
		"systemd":  object{"units": []object{{"name": unitName, "enabled": true, "contents": unit}}},
	}
	return encode(doc), nil
}

// pack is gzip in base64.
func pack(text string) (string, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", fmt.Errorf("userdata: compress: %w", err)
	}
	if _, err := strings.NewReader(text).WriteTo(w); err != nil {
		return "", fmt.Errorf("userdata: compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("userdata: compress: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
