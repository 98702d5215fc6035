package install

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/units"
)

// User is the account and the group that the agent runs as.
const User = "autoscaler-agent"

// The agent's places on the machine.
const (
	configDir     = "/etc/autoscaler-agent"
	stateDir      = "/var/lib/autoscaler-agent"
	envFile       = configDir + "/agent.env"
	joinLink      = "/etc/worker.env"
	joinFile      = stateDir + "/worker.env"
	ownUnits      = "/etc/systemd/system/"
	packagedUnits = "/usr/lib/systemd/system/"
	unit          = "autoscaler-agent.service"
	renewTimer    = "autoscaler-agent-renew.timer"
	unitBinary    = "/usr/local/bin/autoscaler-agent" // as the unit files are written
)

var unitFiles = []string{unit, "autoscaler-agent-renew.service", renewTimer}

func (h Host) user() Step {
	if _, found := h.GroupID(User); found {
		return present("user", "%s exists", User)
	}
	return change("user", "make the system user "+User+" (systemd-sysusers)", func(ctx context.Context) error {
		_, err := h.Run(ctx, fmt.Sprintf("u %s - %q %s /usr/sbin/nologin\n", User, User, stateDir), "systemd-sysusers", "-")
		return err
	})
}

func (h Host) directory() Step {
	if st, err := os.Stat(h.path(configDir)); err == nil && st.Mode().Perm() == 0o750 && h.owned(st) {
		return present("directory", "%s is there", configDir)
	}
	return change("directory", "make "+configDir+", mode 0750, group "+User, func(context.Context) error {
		if err := os.MkdirAll(h.path(configDir), 0o750); err != nil {
			return err
		}
		if err := os.Chmod(h.path(configDir), 0o750); err != nil { // #nosec G302 -- a directory, whatever umask is in force
			return err
		}
		return h.own(configDir)
	})
}

func (h Host) owned(st fs.FileInfo) bool {
	id, found := h.GroupID(User)
	return found && groupOf(st) == id
}

// write is the step that brings a file to its text. A group other than the agent's has no
// business with a file of mode 0640.
func (h Host) write(about, name string, data []byte, mode fs.FileMode) Step {
	st, err := os.Stat(h.path(name))
	before, readErr := h.readIf(name)
	if err == nil && readErr == nil && bytes.Equal(before, data) && st.Mode().Perm() == mode && (mode != 0o640 || h.owned(st)) {
		return present(about, "%s is as it should be", name)
	}
	return change(about, "write "+name, func(context.Context) error {
		if _, err := atomicfile.Write(h.path(name), data, mode); err != nil {
			return err
		}
		if mode != 0o640 {
			return nil
		}
		return h.own(name)
	})
}

func (h Host) link() Step {
	to, err := os.Readlink(h.path(joinLink))
	switch {
	case err == nil && to == joinFile:
		return present("link", "%s leads to %s", joinLink, joinFile)
	case h.exists(joinLink):
		return present("link", "%s is another's and stays: join values are published to %s", joinLink, joinFile)
	}
	return change("link", "link "+joinLink+" to "+joinFile, func(context.Context) error { return os.Symlink(joinFile, h.path(joinLink)) })
}

// unitSteps write the unit files with the binary's own path. A package's unit that starts
// this binary is enough.
func (h Host) unitSteps() ([]Step, error) {
	var out []Step
	changed := false
	for _, name := range unitFiles {
		data, err := units.Files.ReadFile(name)
		if err != nil {
			return nil, err // it is compiled in
		}
		data = bytes.ReplaceAll(data, []byte(unitBinary), []byte(h.Binary))
		packaged, err := h.readIf(packagedUnits + name)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(packaged, data) && !h.exists(ownUnits+name) {
			out = append(out, present("unit", "%s comes from the package", name))
			continue
		}
		s := h.write("unit", ownUnits+name, data, 0o644)
		changed = changed || s.do != nil
		out = append(out, s)
	}
	if changed {
		out = append(out, change("unit", "systemctl daemon-reload", h.systemctl("daemon-reload")))
	}
	if h.Answer("is-enabled", renewTimer) == "enabled" && h.Answer("is-active", renewTimer) == "active" {
		return append(out, present("renewal", "%s is enabled", renewTimer)), nil
	}
	return append(out, change("renewal", "systemctl enable --now "+renewTimer+": the certificate is renewed before its end", h.systemctl("enable", "--now", renewTimer))), nil
}

func (h Host) systemctl(words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := h.Run(ctx, "", append([]string{"systemctl"}, words...)...)
		return err
	}
}

// Answer is what systemctl says of a unit; it fails for "no".
func (h Host) Answer(words ...string) string {
	out, _ := h.Run(context.Background(), "", append([]string{"systemctl"}, words...)...)
	return strings.TrimSpace(out)
}

// restart is the step that takes a changed unit, setting or binary into force. The agent
// finishes what it is in, and the next process goes on from the state file.
func (h Host) restart(changed bool) []Step {
	if h.Answer("is-active", unit) != "active" {
		return nil
	}
	pid := h.Answer("show", "--property=MainPID", "--value", unit)
	exe, err := os.Readlink(h.path("/proc/" + pid + "/exe"))
	if !changed && (err != nil || exe == h.Binary) {
		return []Step{present("service", "it runs this binary")}
	}
	return []Step{change("service", "systemctl restart "+unit, h.systemctl("restart", unit))}
}
