package aws

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"time"
)

// el is one element of an XML answer. Answers are built as trees and not from
// struct tags because AWS writes empty lists as empty elements and leaves
// absent strings out, which encoding/xml cannot say of one type.
type el struct {
	name string
	text string
	kids []el
}

// x builds an element. Parts are text (string, bool, int, float64, time) or
// children (el, []el); a child without a name is left out.
func x(name string, parts ...any) el {
	e := el{name: name}
	for _, part := range parts {
		switch v := part.(type) {
		case el:
			e.add(v)
		case []el:
			for _, kid := range v {
				e.add(kid)
			}
		case string:
			e.text = v
		case bool:
			e.text = strconv.FormatBool(v)
		case int:
			e.text = strconv.Itoa(v)
		case float64:
			e.text = strconv.FormatFloat(v, 'f', -1, 64)
		case time.Time:
			e.text = stamp(v)
		default:
			panic(fmt.Sprintf("aws: no XML form for %T in %s", part, name))
		}
	}
	return e
}

func (e *el) add(kid el) {
	if kid.name != "" {
		e.kids = append(e.kids, kid)
	}
}

// opt leaves the element out when there is nothing to say.
func opt(name, text string) el {
	if text == "" {
		return el{}
	}
	return x(name, text)
}

// when keeps an element only if the condition holds.
func when(ok bool, e el) el {
	if !ok {
		return el{}
	}
	return e
}

// each builds a list element with one member element per item.
func each[T any](name, member string, items []T, f func(T) []el) el {
	list := el{name: name}
	for _, item := range items {
		list.kids = append(list.kids, x(member, f(item)))
	}
	return list
}

// texts builds a list of plain strings.
func texts(name, member string, items []string) el {
	list := el{name: name}
	for _, item := range items {
		list.kids = append(list.kids, x(member, item))
	}
	return list
}

func (e el) write(b *bytes.Buffer, attr string) {
	if e.text == "" && len(e.kids) == 0 {
		b.WriteString("<" + e.name + attr + "/>")
		return
	}
	b.WriteString("<" + e.name + attr + ">")
	xml.EscapeText(b, []byte(e.text))
	for _, kid := range e.kids {
		kid.write(b, "")
	}
	b.WriteString("</" + e.name + ">")
}

// document renders a whole answer with its namespace.
func (e el) document(namespace string) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	attr := ""
	if namespace != "" {
		attr = ` xmlns="` + namespace + `"`
	}
	e.write(&b, attr)
	return b.Bytes()
}

// stamp is the timestamp form of the query protocols: UTC, milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
