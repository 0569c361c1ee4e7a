//! How does a terminal become a screen, and how is it restored? Raw mode and the alternate screen,
//! until this is dropped.

use std::io::{self, Stdout, stdout};
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tcpwhy_view::{Key, State};

/// A terminal used as a screen.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

/// Input from the terminal.
pub(super) enum Came {
    Key(Key),
    /// Columns and lines.
    Size(u16, u16),
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let opened = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match opened {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                close();
                Err(error)
            }
        }
    }

    /// Columns and lines.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.0.size()?;
        Ok((size.width, size.height))
    }

    pub(super) fn draw(&mut self, state: &State) -> io::Result<()> {
        self.0.draw(|frame| state.draw(frame.area(), frame.buffer_mut())).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        close();
    }
}

/// Tries every step even if another fails: half a screen must not be left behind.
fn close() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// The next input, if any comes in time.
pub(super) fn next(within: Duration) -> io::Result<Option<Came>> {
    if !event::poll(within)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Resize(columns, lines) => Some(Came::Size(columns, lines)),
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            let key = match key.code {
                KeyCode::Char('c') if is_control => Some(Key::Interrupt),
                KeyCode::Char(_) if is_control => None,
                KeyCode::Char(c) => Some(Key::Char(c)),
                KeyCode::Enter => Some(Key::Enter),
                KeyCode::Esc => Some(Key::Escape),
                KeyCode::Backspace => Some(Key::Backspace),
                KeyCode::Up => Some(Key::Up),
                KeyCode::Down => Some(Key::Down),
                KeyCode::PageUp => Some(Key::PageUp),
                KeyCode::PageDown => Some(Key::PageDown),
                KeyCode::Home => Some(Key::Home),
                KeyCode::End => Some(Key::End),
                _ => None,
            };
            key.map(Came::Key)
        }
        _ => None,
    })
}
