package externalgrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// answers is an HTTP transport that gives every call the same response.
type answers func() (*http.Response, error)

func (a answers) RoundTrip(*http.Request) (*http.Response, error) { return a() }

// answered returns a Provider whose calls all get this body and these trailers.
func answered(t testing.TB, body []byte, trailer http.Header) *Provider {
	t.Helper()
	p, err := New(Config{Address: "127.0.0.1:1", Insecure: true}, cluster.Reservation{MaxPods: 110})
	if err != nil {
		t.Fatal(err)
	}
	p.client.transport = answers(func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/grpc"}},
			Body: io.NopCloser(bytes.NewReader(body)), Trailer: trailer}, nil
	})
	return p
}

func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

var ok = http.Header{"Grpc-Status": {"0"}}

// FuzzAnswers: no bytes and no status of a plug-in stop the agent, a response that is no
// message is an error of no method that is missing, and what is read can be recorded.
func FuzzAnswers(f *testing.F) {
	groups, _ := proto.Marshal(&protos.NodeGroupsResponse{NodeGroups: []*protos.NodeGroup{{Id: "workers", MaxSize: 3}}})
	instances, _ := proto.Marshal(&protos.NodeGroupNodesResponse{Instances: []*protos.Instance{{Id: "a", Status: &protos.InstanceStatus{InstanceState: 2,
		ErrorInfo: &protos.InstanceErrorInfo{ErrorCode: "x", InstanceErrorClass: 1}}, Machine: &protos.MachineFacts{Addresses: []string{"192.0.2.1", "::1%a"},
		Created: timestamppb.New(time.Unix(1e9, 5)), FailedAt: &timestamppb.Timestamp{Seconds: 1 << 60}}}}})
	settings, _ := proto.Marshal(&protos.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: options{unneeded: time.Minute}.message()})
	for _, m := range [][]byte{groups, instances, settings, {0x0a, 0x05, 0x01}} {
		f.Add(frame(m), "0", "")
		f.Add(m, "0", "")
	}
	f.Add([]byte{}, "12", "unknown service")
	f.Add([]byte{}, "", "")
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1}, "0", "")
	f.Fuzz(func(t *testing.T, body []byte, code, words string) {
		trailer := http.Header{}
		if code != "" {
			trailer.Set("Grpc-Status", code)
			trailer.Set("Grpc-Message", words)
		}
		p := answered(t, body, trailer)
		// One body answers every kind of call, so most of it is read as messages of other kinds.
		list, err := p.Groups(context.Background())
		if _, failed := json.Marshal(list); failed != nil {
			t.Errorf("cannot be recorded: %v", failed)
		}
		if whole := wholeMessage(body); !whole && (err == nil || code == "0" && unimplemented(err)) {
			t.Errorf("took a torn response: %v", err)
		}
		_, _ = p.Instances(context.Background(), "a")
		_, _ = p.options(context.Background(), "workers")
		_, _ = p.template(context.Background(), &cluster.NodeGroup{ID: "workers"})
		err = p.Resize(context.Background(), "workers", 0, 1)
		var e *provider.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("an error without a kind: %v", err)
		}
	})
}

func wholeMessage(body []byte) bool {
	return len(body) >= 5 && body[0] == 0 && uint64(binary.BigEndian.Uint32(body[1:])) == uint64(len(body)-5) && (proto.UnmarshalOptions{}).Unmarshal(body[5:], &protos.RefreshResponse{}) == nil
}

// TestBrokenAnswers: a response that is not of the protocol is transient, leaves the
// outcome of a write open, and never counts as a method that the plug-in does not have.
func TestBrokenAnswers(t *testing.T) {
	for what, c := range map[string]struct {
		body    []byte
		trailer http.Header
	}{
		"no message":          {nil, ok},
		"no status":           {frame(nil), nil},
		"torn frame":          {[]byte{0, 0, 0, 0, 9, 1}, ok},
		"torn message":        {frame([]byte{0x0a, 0x05, 0x01}), ok},
		"two messages":        {append(frame(nil), frame(nil)...), ok},
		"compressed":          {append([]byte{1}, frame(nil)[1:]...), ok},
		"more than the limit": {binary.BigEndian.AppendUint32([]byte{0}, maxAnswer+1), ok},
	} {
		p := answered(t, c.body, c.trailer)
		_, err := p.plugin.NodeGroupIncreaseSize(context.Background(), &protos.NodeGroupIncreaseSizeRequest{})
		if err == nil || unimplemented(err) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if e := unsure(classify("resize", "workers", err)); e.Kind != provider.Transient || !e.Unsure {
			t.Errorf("%s: %s, unsure %t: %v", what, e.Kind, e.Unsure, e)
		}
	}
}

// TestHTTPStatus: the status of a server that is no gRPC server becomes a code of gRPC.
func TestHTTPStatus(t *testing.T) {
	for number, want := range map[int]connect.Code{200: connect.CodeUnknown, 400: connect.CodeInternal, 401: connect.CodeUnauthenticated, 403: connect.CodePermissionDenied,
		404: connect.CodeUnimplemented, 429: connect.CodeUnavailable, 500: connect.CodeUnknown, 502: connect.CodeUnavailable, 503: connect.CodeUnavailable, 504: connect.CodeUnavailable} {
		p := answered(t, nil, nil)
		p.client.transport = answers(func() (*http.Response, error) {
			return &http.Response{StatusCode: number, Header: http.Header{"Content-Type": {"text/html"}}, Body: http.NoBody}, nil
		})
		_, err := p.plugin.NodeGroups(context.Background(), &protos.NodeGroupsRequest{})
		var s *status
		if !errors.As(err, &s) || s.code != want || !strings.Contains(err.Error(), "no gRPC server") {
			t.Errorf("%d: %v", number, err)
		}
	}
}

// TestDurationsInBothLayouts: an older plug-in reads and writes fields 3 to 5, a newer
// one 8 to 10; where both are, the newer ones apply.
func TestDurationsInBothLayouts(t *testing.T) {
	o := options{unneeded: 90 * time.Second, unready: 1500 * time.Millisecond, provision: time.Hour}
	if got, err := optionsOf(o.message()); err != nil || got != o {
		t.Errorf("%+v, %v", got, err)
	}
	older := &protos.NodeGroupAutoscalingOptions{ScaleDownUnneededTime: &protos.MetaDuration{Duration: int64(time.Minute)}}
	if got, err := optionsOf(older); err != nil || got.unneeded != time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	older.ScaleDownUnneededDuration = durationpb.New(time.Hour)
	if got, err := optionsOf(older); err != nil || got.unneeded != time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := optionsOf(&protos.NodeGroupAutoscalingOptions{ScaleDownUnreadyDuration: durationpb.New(-time.Second)}); err == nil {
		t.Error("a duration below zero was read")
	}
}

// TestOldLayoutOnTheWire: the numbers of the old layout are those of the messages of
// k8s.io/api, written by hand here.
func TestOldLayoutOnTheWire(t *testing.T) {
	var o protos.NodeGroupAutoscalingOptions
	if err := proto.Unmarshal([]byte{0x1a, 2, 0x08, 5, 0x22, 2, 0x08, 6, 0x2a, 2, 0x08, 7}, &o); err != nil ||
		o.GetScaleDownUnneededTime().GetDuration() != 5 || o.GetScaleDownUnreadyTime().GetDuration() != 6 || o.GetMaxNodeProvisionTime().GetDuration() != 7 {
		t.Errorf("%v, %v", &o, err)
	}
	var n protos.NodeGroupTemplateNodeInfoResponse
	if err := proto.Unmarshal([]byte{0x0a, 2, 0x0a, 0}, &n); err != nil || len(n.GetNodeInfo()) != 2 {
		t.Errorf("%v, %v", &n, err)
	}
}

// TestTimes: a timestamp that no calendar has is not read.
func TestTimes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, c := range []struct {
		in   *timestamppb.Timestamp
		want time.Time
	}{{nil, time.Time{}}, {&timestamppb.Timestamp{}, time.Time{}}, {&timestamppb.Timestamp{Seconds: 1 << 50}, time.Time{}}, {&timestamppb.Timestamp{Seconds: 1, Nanos: -1}, time.Time{}}, {timestamppb.New(at), at}} {
		if got := timeOf(c.in); !got.Equal(c.want) {
			t.Errorf("%v: %s", c.in, got)
		}
	}
}
