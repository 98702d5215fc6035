package doctor

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestUnasked: who lacks a right is led to rbac.yaml, and who reaches no API server is not.
func TestUnasked(t *testing.T) {
	gone := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 90, 0, 11), Port: 6443}, Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err          error
		text, remedy string
	}{
		{fmt.Errorf("list join tokens: %w", gone), "x: the API server at 10.90.0.11:6443 does not answer", "see that kube-apiserver runs"},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right")), "x: pods is forbidden", "kubectl apply -f rbac.yaml"},
	} {
		f := unasked(LevelWarning, "join", "x: ", c.err)
		if !strings.HasPrefix(f.Text, c.text) || !strings.HasPrefix(f.Remedy, c.remedy) || f.About != "join" || f.Level != LevelWarning {
			t.Errorf("%v: %+v", c.err, f)
		}
	}
}
