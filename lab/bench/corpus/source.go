package corpus

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sourceBytes is how much of the Go release is kept in memory.
const sourceBytes = 24 << 20

// Source is what conversations are about: the files of a Go release, whose words, identifiers and repetition are those
// of real programs. It is read-only once made.
type Source struct {
	files []file   // by path
	prose [][]byte // sentences of comments
}

type file struct {
	name string
	text []byte
}

// Standard is the source that comes with the go command's release.
func Standard() (*Source, error) {
	root, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go release: %w", err)
	}
	src := os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src"))
	s, total := &Source{}, 0
	err = fs.WalkDir(src, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && (base == "testdata" || base == "vendor" || base == "syscall") {
			return fs.SkipDir
		}
		if total > sourceBytes || entry.IsDir() || filepath.Ext(base) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(src, name)
		if err != nil || len(text) < 400 || len(text) > 160<<10 {
			return err
		}
		total += len(text)
		s.files = append(s.files, file{name, text})
		s.addProse(text)
		return nil
	})
	if err == nil && (len(s.files) < 100 || len(s.prose) < 100) {
		err = fmt.Errorf("%d Go files are too few to invent conversations of", len(s.files))
	}
	return s, err
}

// addProse keeps the comments of a file, without their marks.
func (s *Source) addProse(text []byte) {
	var block []byte
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("// "))
		switch {
		case ok && !bytes.HasPrefix(rest, []byte("Copyright")) && !bytes.Contains(rest, []byte("license")):
			block = append(block, rest...)
		case len(block) > 80:
			s.prose = append(s.prose, block)
			block = nil
		default:
			block = nil
		}
	}
}

// text is about n bytes of comments.
func (s *Source) text(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.Write(s.prose[rng.IntN(len(s.prose))])
		b.WriteByte('\n')
	}
	return cut(b.String(), n)
}

// cut shortens a text to n bytes at most, at a character's border.
func cut(text string, n int) string {
	for len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

var (
	nouns = strings.Fields("서버 설정 파일 함수 오류 결제 주문 장바구니 사용자 세션 데이터베이스 색인 검색 화면 버튼 목록 권한 로그 " +
		"시간 테스트 배포 버전 메모리 성능 응답 요청 연결 캐시 문서 주석 변수 타입 인터페이스 패키지 모듈 스크립트 이미지 반올림 합계 " +
		"금액 환불 재고 알림 메일 비밀번호 토큰 암호 백업 복구 이전 상태 잠금 대기열 작업 스레드 고루틴 채널 버퍼 줄 글자 한글 입력")
	particles = strings.Fields("을 를 이 가 은 는 에서 에 로 으로 와 과 의 도 만 까지 부터")
	verbs     = strings.Fields("확인했습니다 수정했습니다 추가해 주세요 고쳐야 합니다 실패합니다 바꿨습니다 읽습니다 저장합니다 삭제하지 " +
		"않습니다 다시 실행해 보겠습니다 필요합니다 동작합니다 느립니다 멈췄습니다 같습니다 다릅니다 정리했습니다 찾았습니다")
)

// korean is about n bytes of Korean, with names of programs between the words as people write them.
func (s *Source) korean(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		for range 2 + rng.IntN(4) {
			b.WriteString(nouns[rng.IntN(len(nouns))])
			b.WriteString(particles[rng.IntN(len(particles))])
			b.WriteByte(' ')
			if rng.IntN(6) == 0 {
				fmt.Fprintf(&b, "`%s` ", filepath.Base(s.files[rng.IntN(len(s.files))].name))
			}
		}
		b.WriteString(verbs[rng.IntN(len(verbs))])
		b.WriteString(". ")
	}
	return cut(b.String(), n)
}

// project is a slice of files that belong together: those that one project's sessions read and change.
func (s *Source) project(seed uint64) []file {
	const size = 40
	at := int(seed % uint64(max(len(s.files)-size, 1)))
	return s.files[at:min(at+size, len(s.files))]
}
