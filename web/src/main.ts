import './app.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { theme } from './state/theme.svelte';

theme.start();
const target = document.getElementById('app');
if (target) mount(App, { target });
