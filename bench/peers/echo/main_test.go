package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
)

// TestRecover shows that echo's own middleware stands between a handler that panics and
// net/http, which would end the connection.
func TestRecover(t *testing.T) {
	e := newEcho(nil)
	e.GET("/panic", func(*echo.Context) error { panic("a handler's") })
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/panic", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d, want %d", w.Code, http.StatusInternalServerError)
	}
}
