package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// runScript executes the join section of the user data. join plays kubeadm: it is
// given the configuration file that the script wrote, and its error becomes
// kubeadm's exit code. The script alone decides about retries.
func (m *Machine) runScript(ctx context.Context, join func(ctx context.Context, file string) error) error {
	section, err := userdata.JoinSection(m.cfg.UserData)
	if err != nil {
		return err
	}
	file := filepath.Join(m.dir, "join.sh")
	if err := os.WriteFile(file, section, 0o700); err != nil {
		return fmt.Errorf("write join section: %w", err)
	}
	requestR, requestW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("run join section: %w", err)
	}
	defer requestR.Close()
	replyR, replyW, err := os.Pipe()
	if err != nil {
		requestW.Close()
		return fmt.Errorf("run join section: %w", err)
	}
	defer replyW.Close()

	cmd := exec.CommandContext(ctx, "/bin/sh", file)
	cmd.Dir = m.dir
	cmd.Env = m.scriptEnv()
	cmd.Stdout, cmd.Stderr = m.console, m.console
	cmd.ExtraFiles = []*os.File{requestW, replyR}
	// The script's children end with it: the whole process group is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Start()
	requestW.Close()
	replyR.Close()
	if err != nil {
		return fmt.Errorf("run join section: %w", err)
	}
	last := m.answer(ctx, requestR, replyW, join)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(last, fmt.Errorf("join section: %w", err))
	}
	return nil
}

// answer serves the script's calls of kubeadm until the script is over, and returns
// the last one's error.
func (m *Machine) answer(ctx context.Context, requests io.Reader, replies io.Writer, join func(context.Context, string) error) error {
	var last error
	for lines := bufio.NewScanner(requests); lines.Scan(); {
		last = join(ctx, lines.Text())
		rc := "0\n"
		if last != nil {
			rc = "1\n"
			fmt.Fprintf(m.console, "kubeadm: error: %v\n", last)
			m.setErr(last)
		}
		if _, err := io.WriteString(replies, rc); err != nil {
			return errors.Join(last, err)
		}
	}
	return last
}

// scriptEnv is all that the script sees of the host: a machine's environment is
// not its test's.
func (m *Machine) scriptEnv() []string {
	env := []string{
		"PATH=" + m.cfg.Tools.Dir + ":" + os.Getenv("PATH"),
		"HOME=" + m.dir,
		"TMPDIR=" + m.dir,
		"JOIN_DIR=" + m.joinDir(),
		"JOIN_PKI=" + m.pkiDir(),
		"JOIN_CONSOLE=/dev/null",
		// The script waits for a joining machine of the test as long as the test does.
		"JOIN_TRY=36000", "JOIN_SECONDS=72000",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + m.cfg.IMDSEndpoint,
		"REAL_SLEEP=" + m.cfg.Tools.sleep,
		"MACHINE_SLEEP=" + strings.TrimSuffix(strconv.FormatFloat(m.cfg.RetrySleep.Seconds(), 'f', 3, 64), ".000"),
	}
	for name, endpoint := range m.cfg.Metadata {
		env = append(env, name+"="+endpoint)
	}
	return env
}

func (m *Machine) joinDir() string { return filepath.Join(m.dir, "run") }
func (m *Machine) pkiDir() string  { return filepath.Join(m.dir, "pki") }
