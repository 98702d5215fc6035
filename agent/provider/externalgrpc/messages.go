package externalgrpc

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of externalgrpc.proto that the agent sends and reads, by hand: twelve
// small ones, against generated code with its reflection, which nothing here needs.

// field is one field of a message as it came: varint holds numbers of every width.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	bytes  []byte
}

var errTorn = errors.New("the message is cut short or is not of this protocol")

// walk calls f for every field of a message. What f does not know it ignores.
func walk(b []byte, f func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errTorn
		}
		b = b[n:]
		x := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			x.varint, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x.varint, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			x.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return errTorn
		}
		b = b[n:]
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// is tells whether the field has this number and can be read as that kind: a known
// number with another kind on the wire is skipped, as protobuf has it.
func (x field) is(number protowire.Number, kind protowire.Type) bool {
	return x.number == number && x.kind == kind
}

func (x field) int() int { return int(int32(x.varint)) }

func appendText(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

func appendNumber(b []byte, number protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(n))
}

func appendDouble(b []byte, number protowire.Number, v float64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(v))
}

func appendMessage(b []byte, number protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), m)
}

// appendTime writes google.protobuf.Timestamp, which on the wire is meta/v1 Time too.
func appendTime(b []byte, number protowire.Number, t time.Time) []byte {
	m := appendNumber(nil, 1, t.Unix())
	return appendMessage(b, number, appendNumber(m, 2, int64(t.Nanosecond())))
}

// appendDuration writes google.protobuf.Duration.
func appendDuration(b []byte, number protowire.Number, d time.Duration) []byte {
	m := appendNumber(nil, 1, int64(d/time.Second))
	return appendMessage(b, number, appendNumber(m, 2, int64(d%time.Second)))
}

// seconds reads Timestamp and Duration: seconds and nanoseconds.
func seconds(b []byte) (sec, nano int64, err error) {
	err = walk(b, func(x field) error {
		switch {
		case x.is(1, protowire.VarintType):
			sec = int64(x.varint)
		case x.is(2, protowire.VarintType):
			nano = int64(x.varint)
		}
		return nil
	})
	return sec, nano, err
}

func readTime(b []byte) (time.Time, error) {
	sec, nano, err := seconds(b)
	if err != nil || sec == 0 && nano == 0 {
		return time.Time{}, err
	}
	return time.Unix(sec, nano).UTC(), nil
}

// readDuration reads google.protobuf.Duration, or with old meta/v1 Duration, which is
// nanoseconds.
func readDuration(b []byte, old bool) (time.Duration, error) {
	sec, nano, err := seconds(b)
	if old {
		return time.Duration(sec), err
	}
	if sec > math.MaxInt64/int64(time.Second) || sec < 0 {
		return 0, fmt.Errorf("a duration of %d seconds", sec)
	}
	return time.Duration(sec)*time.Second + time.Duration(nano), err
}

// nodeGroup is NodeGroup.
type nodeGroup struct {
	id       string
	min, max int
}

func readNodeGroups(b []byte) (out []nodeGroup, err error) {
	err = walk(b, func(x field) error {
		if !x.is(1, protowire.BytesType) {
			return nil
		}
		var g nodeGroup
		out = append(out, g)
		return walk(x.bytes, func(x field) error {
			g := &out[len(out)-1]
			switch {
			case x.is(1, protowire.BytesType):
				g.id = string(x.bytes)
			case x.is(2, protowire.VarintType):
				g.min = x.int()
			case x.is(3, protowire.VarintType):
				g.max = x.int()
			}
			return nil
		})
	})
	return out, err
}

func readTargetSize(b []byte) (n int, err error) {
	err = walk(b, func(x field) error {
		if x.is(1, protowire.VarintType) {
			n = x.int()
		}
		return nil
	})
	return n, err
}

// The states of InstanceStatus. What a plug-in leaves out, or invents, is unspecified.
const (
	stateUnspecified = iota
	stateRunning
	stateCreating
	stateDeleting
)

// The classes of InstanceErrorInfo.
const (
	classOutOfResources = 1
	classOther          = 99
)

// instance is Instance with its status and facts.
type instance struct {
	id            string
	state         int
	code, message string
	class         int
	facts         facts
}

// facts is MachineFacts, and an entry of groups.yaml.
type facts struct {
	nodeNames, names, addresses []string
	created, failedAt           time.Time
	typ, zone                   string
}

func readInstances(b []byte) (out []instance, err error) {
	err = walk(b, func(x field) error {
		if !x.is(1, protowire.BytesType) {
			return nil
		}
		i, err := readInstance(x.bytes)
		out = append(out, i)
		return err
	})
	return out, err
}

func readInstance(b []byte) (i instance, err error) {
	err = walk(b, func(x field) error {
		switch {
		case x.is(1, protowire.BytesType):
			i.id = string(x.bytes)
		case x.is(2, protowire.BytesType):
			return i.readStatus(x.bytes)
		case x.is(1000, protowire.BytesType):
			return i.facts.read(x.bytes)
		}
		return nil
	})
	return i, err
}

func (i *instance) readStatus(b []byte) error {
	return walk(b, func(x field) error {
		switch {
		case x.is(1, protowire.VarintType):
			i.state = x.int()
		case x.is(2, protowire.BytesType):
			return walk(x.bytes, func(x field) error {
				switch {
				case x.is(1, protowire.BytesType):
					i.code = string(x.bytes)
				case x.is(2, protowire.BytesType):
					i.message = string(x.bytes)
				case x.is(3, protowire.VarintType):
					i.class = x.int()
				}
				return nil
			})
		}
		return nil
	})
}

func (f *facts) read(b []byte) error {
	return walk(b, func(x field) (err error) {
		if x.kind != protowire.BytesType {
			return nil
		}
		switch x.number {
		case 1:
			f.nodeNames = append(f.nodeNames, string(x.bytes))
		case 2:
			f.names = append(f.names, string(x.bytes))
		case 3:
			f.addresses = append(f.addresses, string(x.bytes))
		case 4:
			f.created, err = readTime(x.bytes)
		case 5:
			f.typ = string(x.bytes)
		case 6:
			f.zone = string(x.bytes)
		case 7:
			f.failedAt, err = readTime(x.bytes)
		}
		return err
	})
}

// readTemplate returns the bytes of a core/v1 Node in either layout; nil: there is none.
func readTemplate(b []byte) (node []byte, err error) {
	err = walk(b, func(x field) error {
		if x.is(2, protowire.BytesType) || x.is(1, protowire.BytesType) && node == nil {
			node = x.bytes
		}
		return nil
	})
	return node, err
}

func readPrice(b []byte) (price float64, err error) {
	err = walk(b, func(x field) error {
		if x.is(1, protowire.Fixed64Type) {
			price = math.Float64frombits(x.varint)
		}
		return nil
	})
	return price, err
}

// options is NodeGroupAutoscalingOptions.
type options struct {
	utilization, gpuUtilization  float64
	unneeded, unready, provision time.Duration
	ignoreDaemonSets             bool
}

// write gives the durations in both layouts: an older plug-in reads 3 to 5, a newer one
// 8 to 10, and each skips what it does not know.
func (o options) write() []byte {
	b := appendDouble(nil, 1, o.utilization)
	b = appendDouble(b, 2, o.gpuUtilization)
	for i, d := range []time.Duration{o.unneeded, o.unready, o.provision} {
		b = appendMessage(b, protowire.Number(3+i), appendNumber(nil, 1, int64(d)))
	}
	if o.ignoreDaemonSets {
		b = appendNumber(b, 7, 1)
	}
	for i, d := range []time.Duration{o.unneeded, o.unready, o.provision} {
		b = appendDuration(b, protowire.Number(8+i), d)
	}
	return b
}

// readOptions reads NodeGroupAutoscalingOptionsResponse; given is false when it has none.
func readOptions(b []byte) (o options, given bool, err error) {
	err = walk(b, func(x field) error {
		if !x.is(1, protowire.BytesType) {
			return nil
		}
		given = true
		return o.read(x.bytes)
	})
	return o, given, err
}

func (o *options) read(b []byte) error {
	old := [3]time.Duration{}
	durations := [3]*time.Duration{&o.unneeded, &o.unready, &o.provision}
	err := walk(b, func(x field) (err error) {
		switch {
		case x.is(1, protowire.Fixed64Type):
			o.utilization = math.Float64frombits(x.varint)
		case x.is(2, protowire.Fixed64Type):
			o.gpuUtilization = math.Float64frombits(x.varint)
		case x.is(7, protowire.VarintType):
			o.ignoreDaemonSets = x.varint != 0
		case x.kind == protowire.BytesType && x.number >= 3 && x.number <= 5:
			old[x.number-3], err = readDuration(x.bytes, true)
		case x.kind == protowire.BytesType && x.number >= 8 && x.number <= 10:
			*durations[x.number-8], err = readDuration(x.bytes, false)
		}
		return err
	})
	for i, d := range durations {
		if *d == 0 {
			*d = old[i]
		}
	}
	return err
}

// node writes ExternalGrpcNode.
func node(id, name string, labels map[string]string) []byte {
	b := appendText(nil, 1, id)
	b = appendText(b, 2, name)
	for k, v := range labels {
		b = appendMessage(b, 3, appendText(appendText(nil, 1, k), 2, v))
	}
	return b
}
