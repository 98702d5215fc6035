package userdata

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Marks around a reference to a shell variable inside a document. They are private-use
// characters, which no validated value holds.
const refBegin, refEnd = "\ue000", "\ue001"

// ref stands for the value of a shell variable: NAME, or an expansion such as "NAME:-x".
func ref(name string) string { return refBegin + name + refEnd }

// hereDocument encodes a value as JSON, which is YAML too, for an unquoted here-document: the
// shell puts the variables in, and nothing else in the text is special to it. Each variable
// holds only characters that need no escape in a JSON string.
func hereDocument(v any) string {
	text := hereQuote(string(encode(v)))
	return strings.NewReplacer(refBegin+"LABELS:+"+refEnd, "${LABELS:+$LABELS,}", refBegin, "${", refEnd, "}").Replace(text)
}

// encode is JSON for people to read, without the escapes that HTML would want.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		panic("userdata: a document of plain values was not encoded: " + err.Error())
	}
	return b.Bytes()
}
