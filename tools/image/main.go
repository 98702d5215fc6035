// Command image packs one static program as an image without a daemon: an archive in the
// layout of OCI, which `ctr images import`, skopeo and crane read.
//
//	image -name registry.example.net/autoscaler-agent:v1.0.0 -out image.tar amd64=FILE arm64=FILE
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// certificatesFile is where Go programs look for the authorities of the public internet.
const certificatesFile = "etc/ssl/certs/ca-certificates.crt"

func main() {
	var o options
	flag.StringVar(&o.name, "name", "", "`name` of the image with its tag")
	flag.StringVar(&o.out, "out", "", "`file` to write")
	flag.StringVar(&o.program, "program", "", "`name` of the program in the image (default that of the first file)")
	flag.StringVar(&o.user, "user", "", "`UID:GID` that it runs as (default root)")
	flag.StringVar(&o.cmd, "cmd", "", "its first `argument`")
	flag.StringVar(&o.certificates, "certificates", "", "`file` with certificate authorities to put in")
	flag.Parse()
	if err := o.run(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

type options struct{ name, out, program, user, cmd, certificates string }

// run packs ARCH=FILE of args.
func (o options) run(args []string) error {
	if o.name == "" || o.out == "" || len(args) == 0 {
		return errors.New("give -name, -out and at least one ARCH=FILE")
	}
	var variants []variant
	for _, arg := range args {
		arch, from, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: give ARCH=FILE", arg)
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		name := o.program
		if name == "" {
			name = filepath.Base(from)
		}
		v := variant{Arch: arch, Entrypoint: "/usr/local/bin/" + name, User: o.user, Files: []file{{Name: "usr/local/bin/" + name, Mode: 0o755, Data: data}}}
		if o.cmd != "" {
			v.Cmd = []string{o.cmd}
		}
		if o.certificates != "" {
			text, err := os.ReadFile(o.certificates)
			if err != nil {
				return err
			}
			if !bytes.Contains(text, []byte("BEGIN CERTIFICATE")) {
				return fmt.Errorf("%s holds no certificate", o.certificates)
			}
			v.Files = append(v.Files, file{Name: certificatesFile, Mode: 0o644, Data: text})
		}
		variants = append(variants, v)
	}
	f, err := os.Create(o.out)
	if err != nil {
		return err
	}
	return errors.Join(write(f, o.name, variants), f.Close())
}
