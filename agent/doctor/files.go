package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// unitUser is the account of the systemd unit.
const unitUser = "autoscaler-agent"

// Files tries what the agent reads and writes on this machine, as the user of this process.
func Files(cfg config.Config, offline bool) []Finding {
	out := checkWritable("state directory", cfg.StateDir, config.Prefix+"_STATE_DIR")
	if cfg.Socket != "off" && cfg.Socket != "" && !offline {
		out = append(out, checkWritable("socket directory", filepath.Dir(cfg.Socket), config.Prefix+"_SOCKET")...)
	}
	out = append(out, checkGroupsFile(cfg)...)
	authorities, _ := os.ReadFile(attest.AuthorityFile) // without it nobody's signature is looked at
	for _, f := range append(checkPublished(cfg), checkAttest(cfg, authorities, time.Now())...) {
		if offline && f.Level == LevelError {
			f.Level = LevelWarning // one service's trouble does not keep the others from starting
		}
		out = append(out, f)
	}
	return out
}

// filesAsUnit is Files as the unit's user, where root asks and there is such a user: root may
// write everywhere, and the agent may not. The command starts itself once more for that; the
// environment has the settings of the environment file by now.
func filesAsUnit(ctx context.Context, cfg config.Config, offline bool) []Finding {
	account, err := user.Lookup(unitUser)
	if err != nil || os.Geteuid() != 0 {
		return Files(cfg, offline)
	}
	args := []string{"check", "--files", "--env-file", "/dev/null", "--output", "json"}
	if offline {
		args = append(args, "--offline")
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	out, err := runAs(ctx, account, os.Environ(), args)
	if err != nil {
		return append(Files(cfg, offline), Finding{Level: LevelWarning, About: "files", Text: "tried as root and not as " + unitUser + ": " + err.Error()})
	}
	for i := range out {
		out[i].Text += " (as user " + account.Username + ")"
	}
	return out
}

// AsUnit is Check as the systemd unit would do it: as its user, with its environment and none of
// this process: a shell's credentials say nothing about those of the unit. An API server enforces
// a new policy some seconds after it was applied; it is waited for.
func AsUnit(ctx context.Context, environment []string) ([]Finding, error) {
	account, err := user.Lookup(unitUser)
	if err != nil {
		return nil, err
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + account.HomeDir, "USER=" + account.Username, "LOGNAME=" + account.Username}
	unenforced := func(f Finding) bool { return f.About == "credential" && f.Level == LevelError }
	for began := time.Now(); ; {
		out, err := runAs(ctx, account, append(env, environment...), []string{"check", "--output", "json"})
		if err != nil || !slices.ContainsFunc(out, unenforced) || time.Since(began) > policyWithin {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// policyWithin bounds the wait for the policies to be enforced.
const policyWithin = 20 * time.Second

// runAs runs this program as another user and reads the findings that it prints.
func runAs(ctx context.Context, account *user.User, environment, args []string) ([]Finding, error) {
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", account.Username, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...) // #nosec G204 -- this program itself
	cmd.Dir, cmd.Env = "/", environment
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	text, err := cmd.Output() // the exit code says no more than the findings
	var out []Finding
	if bad := json.Unmarshal(text, &out); bad != nil {
		return nil, errors.Join(err, bad)
	}
	return out, nil
}

func checkWritable(about, dir, variable string) []Finding {
	f, err := os.CreateTemp(dir, ".check-*")
	if errors.Is(err, os.ErrNotExist) {
		return []Finding{{Level: LevelWarning, About: about, Text: dir + " does not exist", Remedy: "systemd makes it for the unit; otherwise make it, or set " + variable}}
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return []Finding{{Level: LevelError, About: about, Text: dir + " is not a directory", Remedy: "set " + variable + " to a directory"}}
	}
	if err != nil {
		text := err.Error()
		if p, ok := errors.AsType[*fs.PathError](err); ok { // the name of the file that was tried says nothing
			text = dir + ": " + p.Err.Error()
		}
		return []Finding{{Level: LevelError, About: about, Text: text, Remedy: "make it writable for the agent's user, or set " + variable}}
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	if err != nil {
		return []Finding{{Level: LevelWarning, About: about, Text: err.Error()}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: dir + " is writable"}}
}

// checkPublished looks at the directory of the file that bootstrap publishes.
func checkPublished(cfg config.Config) []Finding {
	if !cfg.Bootstrap.Enabled || cfg.Bootstrap.File == "" {
		return nil
	}
	target := cfg.Bootstrap.File
	if to, err := os.Readlink(target); err == nil { // it may dangle until the first publication
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	return checkWritable("publish directory", filepath.Dir(target), config.Prefix+"_BOOTSTRAP_FILE")
}
